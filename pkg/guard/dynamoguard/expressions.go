package dynamoguard

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Condition says that the item has seen no larger token and belongs to no other
// lock. Every write needs it, and a stamp or tombstone beside it; join it with
// the caller's own conditions by And. Building the expression fails if the guard
// is invalid, see [Guard.Check].
//
// Have the request return the old item when the condition fails
// (ReturnValuesOnConditionCheckFailure: ALL_OLD), for [Guard.Refused] to see why.
func (g Guard) Condition() expression.ConditionBuilder {
	t := g.terms()
	lock := expression.NameNoDotSplit(g.Attributes.lock())
	bound := lock.AttributeNotExists().Or(lock.Equal(t.value(t.binding())))
	var newest []expression.ConditionBuilder
	for _, h := range t.held {
		seen := expression.NameNoDotSplit(h.attribute)
		newest = append(newest, seen.AttributeNotExists().Or(seen.LessThanEqual(t.value(number(h.token)))))
	}
	return bound.And(newest[0], newest[1:]...)
}

// Stamp adds to an update of the caller that the item remembers the tokens, and
// is no tombstone any more.
func (g Guard) Stamp(u expression.UpdateBuilder) expression.UpdateBuilder {
	return g.remember(u).Remove(expression.NameNoDotSplit(g.Attributes.tombstone()))
}

// Tombstone makes an update of the caller a delete: the item stays, remembers
// the tokens, and says that it stands for none. The caller's part is to remove
// the attributes with the data.
func (g Guard) Tombstone(u expression.UpdateBuilder) expression.UpdateBuilder {
	return g.remember(u).Set(expression.NameNoDotSplit(g.Attributes.tombstone()), expression.Value(true))
}

func (g Guard) remember(u expression.UpdateBuilder) expression.UpdateBuilder {
	t := g.terms()
	for _, h := range t.held {
		u = u.Set(expression.NameNoDotSplit(h.attribute), t.value(number(h.token)))
	}
	return u.Set(expression.NameNoDotSplit(g.Attributes.lock()), t.value(t.binding()))
}

// StampItem adds to an item for PutItem that it remembers the tokens. It fails
// as [Guard.Check] does, and with [fence.ErrInvalid] if the guard declares locks
// that the writer does not hold: the new item would forget their tokens. Use
// UpdateItem and [Guard.Stamp] then.
func (g Guard) StampItem(item map[string]types.AttributeValue) error {
	t := g.terms()
	if t.err != nil {
		return t.err
	}
	if len(t.held) < len(t.locks) {
		return fmt.Errorf("%w: a put would forget tokens, for not all of %q are held", fence.ErrInvalid, t.locks)
	}
	for _, h := range t.held {
		item[h.attribute] = number(h.token)
	}
	item[g.Attributes.lock()] = t.binding()
	delete(item, g.Attributes.tombstone())
	return nil
}

// TombstoneItem makes of an item for PutItem, which has the key and nothing
// else, the tombstone that replaces whatever is there. It fails as
// [Guard.StampItem] does.
func (g Guard) TombstoneItem(item map[string]types.AttributeValue) error {
	if err := g.StampItem(item); err != nil {
		return err
	}
	item[g.Attributes.tombstone()] = &types.AttributeValueMemberBOOL{Value: true}
	return nil
}

// IsTombstone is the condition that an item stands for none. A caller who has
// attribute_not_exists(key), to create an item only once, adds it by Or;
// negated, it is a filter for queries and scans.
func (a Attributes) IsTombstone() expression.ConditionBuilder {
	return expression.NameNoDotSplit(a.tombstone()).AttributeExists()
}
