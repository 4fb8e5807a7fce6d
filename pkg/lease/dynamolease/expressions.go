package dynamolease

import (
	"regexp"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What a table must know of its items.
const (
	// KeyAttribute is the partition key, a string: the table has no other key.
	KeyAttribute = "pk"

	// RetireAttribute is the time from which on an idle lock may be deleted, in
	// epoch seconds: the table's TTL attribute.
	RetireAttribute = "gc"
)

// The attributes of an item. Their names are short because every byte counts
// towards the write unit of 1 KB.
var (
	tok   = expression.Name("tok")   // token of the last grant: the counter
	acq   = expression.Name("acq")   // logical clock of the last grant
	lid   = expression.Name("lid")   // lease id; present while held
	rid   = expression.Name("rid")   // request id of the last grant
	own   = expression.Name("own")   // holder
	sub   = expression.Name("sub")   // principal
	since = expression.Name("since") // time of the last grant
	exp   = expression.Name("exp")   // expiry; present while held
	free  = expression.Name("free")  // earliest next grant
	hold  = expression.Name("hold")  // end of the minimum hold
	dly   = expression.Name("dly")   // skew and lock delay
	ttl   = expression.Name("ttl")
	meta  = expression.Name("meta")
	gc    = expression.Name(RetireAttribute) // retirement, in epoch seconds
	ptok  = expression.Name("ptok")          // the lease that the last grant replaced:
	pexp  = expression.Name("pexp")          // its token, expiry (0 unless it ran out)
	pown  = expression.Name("pown")          // and holder
	x     = expression.Name("x")             // map of markers: requests that were withdrawn
	mark  = expression.Name("x.w")           // the marker of one request, whatever it is called
	v     = expression.Name("v")             // version of this schema
)

// Conditions. Those on an attribute that a new item lacks say so: a comparison
// with a missing attribute is false, and <> is true. A counter above the most is
// not ours, and is refused before it is counted up.
var (
	newer     = absentOr(tok, acq.LessThan(param("now")).And(tok.Between(param("floor"), param("most"))))
	unchanged = tok.Equal(param("old"))
	available = absentOr(free, free.LessThanEqual(param("now")))
	unspent   = absentOr(rid, rid.NotEqual(param("rid")))
	unmarked  = mark.AttributeNotExists() // so it is where there is no map
	named     = lid.Equal(param("lid")).And(tok.Equal(param("tok")))
)

func absentOr(n expression.NameBuilder, c expression.ConditionBuilder) expression.ConditionBuilder {
	return n.AttributeNotExists().Or(c)
}

// grant records a lease and, from the item as it was, the one that it replaces.
func grant() expression.UpdateBuilder {
	return expression.
		Set(tok, expression.Plus(tok.IfNotExists(param("seed")), param("inc"))).
		Set(acq, param("acq")).
		Set(lid, param("lid")).
		Set(rid, param("rid")).
		Set(own, param("own")).
		Set(sub, param("sub")).
		Set(since, param("now")).
		Set(exp, param("exp")).
		Set(free, param("free")).
		Set(hold, param("hold")).
		Set(dly, param("dly")).
		Set(ttl, param("ttl")).
		Set(gc, param("gc")).
		Set(v, param("v")).
		Set(ptok, tok.IfNotExists(param("zero"))).
		Set(pexp, exp.IfNotExists(param("zero"))).
		Set(pown, own.IfNotExists(param("empty")))
}

// The statements. Fast grants need no knowledge of the item; slow ones compare
// it with the token that was seen.
var (
	grantFast     = compile(grant().Remove(meta), newer.And(available, unspent, unmarked))
	grantFastMeta = compile(grant().Set(meta, param("meta")), newer.And(available, unspent, unmarked))
	grantSlow     = compile(grant().Remove(meta), unchanged.And(available, unspent, unmarked))
	grantSlowMeta = compile(grant().Set(meta, param("meta")), unchanged.And(available, unspent, unmarked))

	renew = compile(
		expression.
			Set(exp, param("exp")).
			Set(free, param("exp").Plus(dly)).
			Set(ttl, param("ttl")).
			Set(gc, param("gc")),
		named.And(exp.GreaterThan(param("now")), exp.LessThan(param("exp"))))

	release = compile(expression.Set(free, hold).Remove(lid).Remove(exp), named)

	// A grant that nobody was told of is taken back: nothing of it stays but its
	// token. If it took over a lease that ran out, that lease is what ran out again.
	takeBack          = compile(expression.Set(free, param("zero")).Set(hold, param("zero")).Remove(lid).Remove(exp), named)
	takeBackAbandoned = compile(
		expression.Set(free, param("zero")).Set(hold, param("zero")).Set(exp, pexp).Set(own, pown), named)

	breakLease = compile(
		expression.
			Set(tok, tok.Plus(param("inc"))).
			Set(acq, acq.Plus(param("one"))).
			Set(free, param("zero")).
			Set(hold, param("zero")).
			Set(gc, param("gc")).
			Remove(lid).
			Remove(exp),
		unchanged.And(lid.AttributeExists()))
)

// A statement is an update with its condition, built once. Its placeholders
// bear the names of attributes and parameters: "#tok >= :floor".
type statement struct {
	update, condition string
	names             map[string]string
}

// parameter stands for a value until the statement is executed.
type parameter string

func param(name parameter) expression.ValueBuilder { return expression.Value(name) }

var placeholder = regexp.MustCompile(`[#:]\d+`)

// compile builds a statement and gives its numbered placeholders their names.
func compile(u expression.UpdateBuilder, c expression.ConditionBuilder) statement {
	built, err := expression.NewBuilder().WithUpdate(u).WithCondition(c).Build()
	if err != nil {
		panic(err) // the statements are constants: every test would fail
	}
	names := make(map[string]string)
	rename := func(p string) string {
		if p[0] == '#' {
			name := built.Names()[p]
			names["#"+name] = name
			return "#" + name
		}
		return ":" + built.Values()[p].(*types.AttributeValueMemberS).Value
	}
	return statement{
		update:    placeholder.ReplaceAllStringFunc(*built.Update(), rename),
		condition: placeholder.ReplaceAllStringFunc(*built.Condition(), rename),
		names:     names,
	}
}
