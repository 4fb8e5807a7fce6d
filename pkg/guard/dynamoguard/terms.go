package dynamoguard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// terms are what the fields of a guard come to.
type terms struct {
	held  []holding // what the writer holds, sorted by lock
	locks []string  // what the item is bound to, sorted
	err   error     // why the guard is invalid
}

// A holding is one lock that the writer holds.
type holding struct {
	lock      string
	token     fence.Token
	attribute string // for the token
}

func (g Guard) terms() terms {
	t := terms{held: []holding{{lock: g.Lock, token: g.Token}}}
	for lock, token := range g.With {
		t.held = append(t.held, holding{lock: lock, token: token})
	}
	slices.SortFunc(t.held, func(a, b holding) int { return cmp.Compare(a.lock, b.lock) })
	t.locks = slices.Clone(g.Locks)
	if len(t.locks) == 0 {
		for _, h := range t.held {
			t.locks = append(t.locks, h.lock)
		}
	}
	slices.Sort(t.locks)
	t.locks = slices.Compact(t.locks)

	if _, twice := g.With[g.Lock]; twice {
		t.err = fmt.Errorf("%w: %q has a token in Token and one in With", fence.ErrInvalid, g.Lock)
	}
	if t.locks[0] == "" {
		t.err = fence.Check("", g.Token)
	}
	for i, h := range t.held {
		t.held[i].attribute = g.Attributes.fence()
		if len(t.locks) > 1 {
			t.held[i].attribute += ":" + unpathed.Replace(h.lock)
		}
		if err := fence.Check(h.lock, h.token); err != nil {
			t.err = err
		} else if !slices.Contains(t.locks, h.lock) {
			t.err = g.otherLock(h.lock, t.locks)
		}
	}
	return t
}

// unpathed takes out what package expression reads as a document path.
var unpathed = strings.NewReplacer("%", "%25", ".", "%2E", "[", "%5B", "]", "%5D")

// binding is the value of the attribute for the locks.
func (t terms) binding() types.AttributeValue {
	if len(t.locks) > 1 {
		return &types.AttributeValueMemberSS{Value: t.locks}
	}
	return &types.AttributeValueMemberS{Value: t.locks[0]}
}

func number(t fence.Token) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: t.String()}
}

// value makes v part of an expression or, if the guard is invalid, keeps the
// expression from being built: the builders return no errors, and what they
// would build guards nothing.
func (t terms) value(v types.AttributeValue) expression.ValueBuilder {
	if t.err != nil {
		return expression.Value(unmarshalable{t.err})
	}
	return expression.Value(v)
}

type unmarshalable struct{ err error }

// MarshalDynamoDBAttributeValue is called by package expression, which drops the
// error and returns one of its own.
func (u unmarshalable) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return nil, u.err
}
