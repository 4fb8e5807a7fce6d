package dynamoguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Condition is the low level, for requests that something else sends: it says that
// an item has seen no larger token and belongs to no other lock. Every write needs
// it, joined with the caller's own conditions by And, and a [Guard.Stamp] or
// [Guard.Tombstone] beside it, and must ask for the old item when the condition
// fails (ReturnValuesOnConditionCheckFailure: ALL_OLD), for [Guard.Refused] to see
// why. Whoever forgets one of the four guards nothing: [Guard.UpdateItem] and its
// kin forget none. It does not add locks; [Guard.Claim] does.
//
// Building the expression fails if the holding is invalid.
func (g *Guard) Condition(h fence.Holding) expression.ConditionBuilder {
	c, err := g.claim(h, "")
	lock, write := expression.NameNoDotSplit(c.a.lock()), expression.NameNoDotSplit(c.a.write())
	none := lock.AttributeNotExists().And(write.AttributeNotExists(), g.Attributes.IsTombstone().Not())
	ours := lock.Equal(value(err, func() types.AttributeValue { return binding(c.declared) })).And(write.AttributeExists())
	for _, name := range c.declared {
		seen := expression.NameNoDotSplit(c.attribute(name))
		none = none.And(seen.AttributeNotExists())
		if t := c.held(name); t != 0 {
			ours = ours.And(seen.LessThanEqual(expression.Value(number(t))))
		}
	}
	return none.Or(ours)
}

// Stamp adds to an update of the caller that the item remembers the tokens, and
// is no tombstone any more.
func (g *Guard) Stamp(h fence.Holding, u expression.UpdateBuilder) expression.UpdateBuilder {
	return g.remember(h, u).Remove(expression.NameNoDotSplit(g.Attributes.tombstone()))
}

// Tombstone makes an update of the caller a delete: the item stays, remembers
// the tokens, and says that it stands for none. The caller's part is to remove
// the attributes with the data.
func (g *Guard) Tombstone(h fence.Holding, u expression.UpdateBuilder) expression.UpdateBuilder {
	return g.remember(h, u).Set(expression.NameNoDotSplit(g.Attributes.tombstone()), expression.Value(true))
}

func (g *Guard) remember(h fence.Holding, u expression.UpdateBuilder) expression.UpdateBuilder {
	c, err := g.claim(h, "")
	for _, name := range c.declared {
		seen := expression.NameNoDotSplit(c.attribute(name))
		if t := c.held(name); t != 0 {
			u = u.Set(seen, expression.Value(number(t)))
		} else {
			u = u.Set(seen, expression.IfNotExists(seen, expression.Value(number(0))))
		}
	}
	return u.
		Set(expression.NameNoDotSplit(c.a.lock()), value(err, func() types.AttributeValue { return binding(c.declared) })).
		Set(expression.NameNoDotSplit(c.a.write()), expression.Value(text(c.id)))
}

// Refused returns err as it is, unless the guard refused the write that was built
// from its expressions: then it returns the refusal. An error of building them
// becomes that of the holding. Resource names the item in it.
func (g *Guard) Refused(ctx context.Context, h fence.Holding, resource string, err error) error {
	c, invalid := g.claim(h, resource)
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return g.Observer.See(ctx, c.why(failed.Item, resource, err))
	}
	return g.Observer.See(ctx, cmp.Or(invalid, err))
}

// RefusedAt is [Guard.Refused] for TransactWriteItems, where this guard is in
// item i of the transaction, from 0.
func (g *Guard) RefusedAt(ctx context.Context, h fence.Holding, resource string, i int, err error) error {
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && i < len(canceled.CancellationReasons) {
		if r := canceled.CancellationReasons[i]; aws.ToString(r.Code) == "ConditionalCheckFailed" {
			c, _ := g.claim(h, resource)
			return g.Observer.See(ctx, fence.Settled(c.why(r.Item, resource, err)))
		}
	}
	return g.Refused(ctx, h, resource, err)
}

func (c claim) why(item Item, resource string, err error) error {
	if len(c.declared) == 0 {
		return err
	}
	verdict, _, refusal := c.judge(item, nil, resource)
	if verdict == narrow {
		refusal = fmt.Errorf("dynamoguard: %s takes fewer locks than are declared: claim it first: %w", resource, err)
	}
	return cmp.Or(refusal, err)
}

// IsTombstone is the condition that an item stands for none. A caller who has
// attribute_not_exists(key), to create an item only once, adds it by Or;
// negated, it is a filter for queries and scans.
func (a Attributes) IsTombstone() expression.ConditionBuilder {
	return expression.NameNoDotSplit(a.tombstone()).AttributeExists()
}

// value makes v part of an expression or, if the holding is invalid, keeps the
// expression from being built: the builders return no errors, and what they would
// build guards nothing.
func value(err error, v func() types.AttributeValue) expression.ValueBuilder {
	if err != nil {
		return expression.Value(unmarshalable{err})
	}
	return expression.Value(v())
}

type unmarshalable struct{ err error }

// MarshalDynamoDBAttributeValue is called by package expression, which drops the
// error and returns one of its own.
func (u unmarshalable) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return nil, u.err
}
