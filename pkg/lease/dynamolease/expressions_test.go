package dynamolease

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// The statements as the protocol has them.
const (
	setGrant = `SET #tok = if_not_exists(#tok, :seed) + :inc, #acq = :acq, #lid = :lid, #rid = :rid, #own = :own,
		#sub = :sub, #since = :now, #exp = :exp, #free = :free, #hold = :hold, #dly = :dly, #ttl = :ttl, #gc = :gc, #v = :v,
		#ptok = if_not_exists(#tok, :zero), #pexp = if_not_exists(#exp, :zero), #pown = if_not_exists(#own, :empty)`
	ifFast = `(attribute_not_exists(#tok) OR (#acq < :now AND #tok BETWEEN :floor AND :most))
		AND (attribute_not_exists(#free) OR #free <= :now) AND (attribute_not_exists(#rid) OR #rid <> :rid)
		AND attribute_not_exists(#x.#w)`
	ifSlow = `#tok = :old AND (attribute_not_exists(#free) OR #free <= :now) AND (attribute_not_exists(#rid) OR #rid <> :rid)
		AND attribute_not_exists(#x.#w)`
)

func TestTheStatementsAreThoseOfTheProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		statement         statement
		update, condition string
	}{
		"a fast grant":                {grantFast, setGrant + " REMOVE #meta", ifFast},
		"a fast grant with metadata":  {grantFastMeta, setGrant + ", #meta = :meta", ifFast},
		"a slow grant":                {grantSlow, setGrant + " REMOVE #meta", ifSlow},
		"a slow grant with metadata":  {grantSlowMeta, setGrant + ", #meta = :meta", ifSlow},
		"a renewal":                   {renew, "SET #exp = :exp, #free = :exp + #dly, #ttl = :ttl, #gc = :gc", "#lid = :lid AND #tok = :tok AND #exp > :now AND #exp < :exp"},
		"a release":                   {release, "SET #free = #hold REMOVE #lid, #exp", "#lid = :lid AND #tok = :tok"},
		"taking a grant back":         {takeBack, "SET #free = :zero, #hold = :zero REMOVE #lid, #exp", "#lid = :lid AND #tok = :tok"},
		"… and the lease before it":   {takeBackAbandoned, "SET #free = :zero, #hold = :zero, #exp = #pexp, #own = #pown", "#lid = :lid AND #tok = :tok"},
		"a break, which is no grant ": {breakLease, "SET #tok = #tok + :inc, #acq = #acq + :one, #free = :zero, #hold = :zero, #gc = :gc REMOVE #lid, #exp", "#tok = :old AND attribute_exists(#lid)"},
	} {
		if got, want := normalUpdate(c.statement.update), normalUpdate(c.update); got != want {
			t.Errorf("%s: the update is\n%s\nwant\n%s", name, got, want)
		}
		if got, want := normalCondition(t, c.statement.condition), normalCondition(t, c.condition); got != want {
			t.Errorf("%s: the condition is\n%s\nwant\n%s", name, got, want)
		}
	}
}

// mine is a request whose marker is 1 in the markers below, at time 1.
var (
	mine       = protocol.Withdrawal{RequestID: "mine", Principal: "role-1"}
	heldByMine = protocol.Record{Token: 7, LeaseID: "id", RequestID: "mine", Retire: 1}
)

// marked has markers in it, and is to be retired at 1.
func marked(times ...protocol.Instant) protocol.Record {
	var all []protocol.Marker
	for _, at := range times {
		m := protocol.Marker{Mark: fmt.Sprintf("marker %5d", at), Until: at}
		if at == 1 {
			m.Mark = mine.Mark()
		}
		all = append(all, m)
	}
	m, _ := protocol.MarkersOf(all)
	return protocol.Record{Markers: m, Retire: 1}
}

// What a withdrawal writes depends on what was read.
func TestTheStatementsOfAWithdrawalAreThoseOfTheProtocol(t *testing.T) {
	with := func(r protocol.Record, changes func(*protocol.Record)) protocol.Record { changes(&r); return r }
	idle := func(r protocol.Record) protocol.Record {
		return with(r, func(r *protocol.Record) { r.RequestID = "mine" })
	}
	old := protocol.Record{Token: 7, Retire: 1}
	const (
		ungranted = "(attribute_not_exists(#rid) OR #rid <> :rid)"
		over      = "#rid = :rid AND (attribute_not_exists(#lid) OR #exp = #pexp)"
	)
	for name, c := range map[string]struct {
		seen, next        protocol.Record
		update, condition string
	}{
		"nothing is recorded": {protocol.Record{}, marked(1), "SET #gc = :gc, #x = :x",
			ungranted + " AND attribute_not_exists(#gc) AND (attribute_not_exists(#x) OR size(#x) = :zero)"},
		"the first marker": {old, marked(1), "SET #x = :x",
			ungranted + " AND attribute_exists(#gc) AND (attribute_not_exists(#x) OR size(#x) = :zero)"},
		"soon to be retired": {old, with(marked(1), func(r *protocol.Record) { r.Retire = 2 }), "SET #gc = :gc, #x = :x",
			ungranted + " AND #gc = :old AND (attribute_not_exists(#x) OR size(#x) = :zero)"},
		"one more marker": {marked(7), marked(1, 7), "SET #x.#w = :until",
			ungranted + " AND attribute_exists(#gc) AND size(#x) < :most"},
		"markers that it replaces": {marked(7, 8, 9), marked(1, 8), "SET #x.#w = :until REMOVE #x.#d1, #x.#d2",
			ungranted + " AND attribute_exists(#gc) AND (size(#x) < :most OR attribute_exists(#x.#d1))"},
		"its own, which is old": {with(marked(1), func(r *protocol.Record) { r.Markers[0].Until = 7 }), marked(1), "SET #x.#w = :until",
			ungranted + " AND attribute_exists(#gc) AND (size(#x) < :most OR attribute_exists(#x.#w))"},
		"a lease": {heldByMine, idle(marked(1)), "SET #free = #hold, #x = :x REMOVE #lid, #exp",
			"#lid = :lid AND #tok = :tok AND #exp > #pexp AND attribute_exists(#gc) AND (attribute_not_exists(#x) OR size(#x) = :zero)"},
		"a lease, and no room": {heldByMine, idle(old), "SET #free = #hold REMOVE #lid, #exp", "#lid = :lid AND #tok = :tok AND #exp > #pexp AND attribute_exists(#gc)"},
		"a lease that was released": {idle(old), idle(marked(1)), "SET #x = :x",
			over + " AND attribute_exists(#gc) AND (attribute_not_exists(#x) OR size(#x) = :zero)"},
		"a lease that was taken back": {heldByMine, with(marked(1), func(r *protocol.Record) { r.LeaseID, r.RequestID = "id", "mine" }), "SET #x = :x",
			over + " AND attribute_exists(#gc) AND (attribute_not_exists(#x) OR size(#x) = :zero)"},
	} {
		got := withdrawing(c.seen, c.next, mine)
		if got, want := normalUpdate(got.update), normalUpdate(c.update); got != want {
			t.Errorf("%s: the update is\n%s\nwant\n%s", name, got, want)
		}
		if got, want := normalCondition(t, got.condition), normalCondition(t, c.condition); got != want {
			t.Errorf("%s: the condition is\n%s\nwant\n%s", name, got, want)
		}
		if m, found := got.names["#w"]; found && m != mine.Mark() {
			t.Errorf("%s: the marker is called %q", name, m)
		}
	}
	c := withdrawing(marked(7, 8, 9), marked(1, 8), mine)
	if d1, d2 := c.names["#d1"], c.names["#d2"]; d1 != "marker     7" || d2 != "marker     9" {
		t.Errorf("%q and %q are replaced", d1, d2)
	}
}

// normalUpdate brings the clauses of an update, and their parts, in order.
func normalUpdate(s string) string {
	var clauses []string
	for _, clause := range regexp.MustCompile(`(?:SET|REMOVE)[^A-Z]*`).FindAllString(strings.Join(strings.Fields(s), ""), -1) {
		verb := regexp.MustCompile(`^[A-Z]+`).FindString(clause)
		parts := regexp.MustCompile(`,(#[\w.#]+(?:=|$|,))`).ReplaceAllString(strings.TrimPrefix(clause, verb), "\n$1")
		lines := strings.Split(parts, "\n")
		slices.Sort(lines)
		clauses = append(clauses, verb+" "+strings.Join(lines, ", "))
	}
	slices.Sort(clauses)
	return strings.Join(clauses, " ")
}

// normalCondition parses a condition as DynamoDB does, AND before OR, and writes
// it so that only what it means is left: parentheses decide whether a lease can
// be stolen.
func normalCondition(t *testing.T, s string) string {
	t.Helper()
	p := parser{tokens: regexp.MustCompile(`(?:attribute_\w+|size)\s*\([\w.#]+\)|[()]|[^\s()]+`).FindAllString(s, -1)}
	normal := p.list("OR", func() string { return p.list("AND", p.term) })
	if len(p.tokens) > 0 {
		t.Fatalf("cannot read %q from %v on", s, p.tokens)
	}
	return normal
}

type parser struct{ tokens []string }

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	return token
}

// list reads terms joined by one word. A list within a list of the same kind is
// part of it.
func (p *parser) list(word string, term func() string) string {
	var terms []string
	for {
		one := term()
		if inner, ok := strings.CutPrefix(one, word+"["); ok {
			terms = append(terms, split(strings.TrimSuffix(inner, "]"))...)
		} else {
			terms = append(terms, one)
		}
		if len(p.tokens) == 0 || p.tokens[0] != word {
			break
		}
		p.next()
	}
	if len(terms) == 1 {
		return terms[0]
	}
	slices.Sort(terms)
	return word + "[" + strings.Join(terms, ", ") + "]"
}

// split divides at the commas that are in no brackets.
func split(s string) []string {
	depth := 0
	return strings.Split(strings.Map(func(r rune) rune {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			return '\n'
		}
		return r
	}, s), "\n ")
}

func (p *parser) term() string {
	token := p.next()
	switch {
	case token == "(":
		inner := p.list("OR", func() string { return p.list("AND", p.term) })
		p.next()
		return inner
	case strings.HasPrefix(token, "attribute_"):
		return strings.ReplaceAll(token, " ", "")
	case strings.HasPrefix(token, "size"):
		token = strings.ReplaceAll(token, " ", "")
	}
	operator := p.next()
	term := token + " " + operator + " " + p.next()
	if operator == "BETWEEN" {
		term += " " + p.next() + " " + p.next()
	}
	return term
}

func TestConditionsAreReadAsDynamoDBReadsThem(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"AND binds tighter than OR":   {"#a = :a OR #b = :b AND #c = :c", "#a = :a OR (#b = :b AND #c = :c)", true},
		"and not the other way round": {"#a = :a OR #b = :b AND #c = :c", "(#a = :a OR #b = :b) AND #c = :c", false},
		"the order does not matter":   {"#a = :a AND #b = :b AND #c = :c", "(#c = :c AND #a = :a) AND (#b = :b)", true},
		"what is compared does":       {"#a < :a", "#a <= :a", false},
		"so do the ends of a range":   {"#a BETWEEN :a AND :b AND #c = :c", "#a BETWEEN :b AND :a AND #c = :c", false},
		"whose AND is of its own":     {"#a BETWEEN :a AND :b OR #c = :c", "#c = :c OR (#a BETWEEN :a AND :b)", true},
	} {
		if same := normalCondition(t, c.a) == normalCondition(t, c.b); same != c.same {
			t.Errorf("%s: got %t for %s and %s", name, same, c.a, c.b)
		}
	}
}

// DynamoDB refuses a request with a name or value that is not used, or is
// missing. An engine for tests may not.
func TestEveryChangeHasTheNamesAndValuesThatItUses(t *testing.T) {
	next := protocol.Record{Token: 8, Clock: 1, LeaseID: "id", Expires: 2, Free: 3, TTL: time.Second, Delay: time.Second}
	meta := next
	meta.Metadata = "job"
	seen := protocol.Record{Token: 7, LeaseID: "id"}
	for name, c := range map[string]change{
		"a fast grant":               granting(protocol.Record{}, next, 5),
		"a fast grant with metadata": granting(protocol.Record{}, meta, 5),
		"a slow grant":               granting(seen, next, 5),
		"a slow grant with metadata": granting(seen, meta, 5),
		"a renewal":                  renewing(1, next),
		"a release":                  releasing(lease.ReleaseRequest{LeaseID: "id", Token: 7}),
		"a break":                    breaking(seen, next),
		"a withdrawal":               withdrawing(protocol.Record{}, marked(1), mine),
		"one that releases":          withdrawing(heldByMine, marked(1), mine),
		"one that replaces":          withdrawing(marked(7, 8, 9), marked(1), mine),
	} {
		text := c.update + " " + c.condition
		if got, want := slices.Sorted(maps.Keys(c.values)), used(text, `:\w+`); !slices.Equal(got, want) {
			t.Errorf("%s: has the values\n%v, uses\n%v", name, got, want)
		}
		if got, want := slices.Sorted(maps.Keys(c.names)), used(text, `#\w+`); !slices.Equal(got, want) {
			t.Errorf("%s: has the names\n%v, uses\n%v", name, got, want)
		}
		for alias, attribute := range c.names {
			if mark := len(attribute) == 12; !mark && alias != "#"+attribute {
				t.Errorf("%s: %s stands for %s", name, alias, attribute)
			}
		}
		// Any name may become a reserved word: only aliases are used.
		if bare := regexp.MustCompile(`(^|[\s(,])[a-z]\w*\s*([=<>+,)]|$)`).FindString(text); bare != "" {
			t.Errorf("%s: uses %q without an alias", name, bare)
		}
	}
}

func used(text, placeholder string) []string {
	found := regexp.MustCompile(placeholder).FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

func TestAGrantOfALargeTokenIsWrittenExactly(t *testing.T) {
	c := granting(protocol.Record{Token: 7}, protocol.Record{Token: fence.Max, Clock: 1, LeaseID: "id"}, 0)
	d := decoder{item: c.values}
	if inc, old := d.num(":inc"), d.num(":old"); d.err != nil || fence.Token(inc+old) != fence.Max {
		t.Errorf("got %d on top of %d, error %v", inc, old, d.err)
	}
}
