package dynamoguard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Refused returns err as it is, unless the guard refused the write: then it
// returns a [fence.StaleError] or a [fence.OtherLockError]. An error of an
// invalid guard's expression becomes that of [Guard.Check]. A condition of the
// caller's own that failed stays a ConditionalCheckFailedException, and so does
// every failed condition of a request that did not ask for the old item.
//
// The SDK repeats a request that it got no answer to. What is refused is then
// the last repetition: an earlier one may have been accepted, before the larger
// token was seen.
func (g Guard) Refused(ctx context.Context, err error) error {
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return g.why(ctx, failed.Item, err)
	}
	return g.OnRefusal.See(ctx, cmp.Or(g.Check(), err))
}

// RefusedAt is [Guard.Refused] for TransactWriteItems, where this guard is in
// item i of the transaction, from 0.
func (g Guard) RefusedAt(ctx context.Context, i int, err error) error {
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && i < len(canceled.CancellationReasons) {
		if r := canceled.CancellationReasons[i]; aws.ToString(r.Code) == "ConditionalCheckFailed" {
			return g.why(ctx, r.Item, err)
		}
	}
	return g.Refused(ctx, err)
}

// why explains a failed condition by the item that did not meet it.
func (g Guard) why(ctx context.Context, item map[string]types.AttributeValue, err error) error {
	t := g.terms()
	if bound := names(item[g.Attributes.lock()]); bound != nil && !slices.Equal(bound, t.locks) {
		return g.OnRefusal.See(ctx, g.otherLock(g.Lock, bound))
	}
	for _, h := range t.held {
		if known := seen(item[h.attribute]); known > h.token {
			return g.OnRefusal.See(ctx, &fence.StaleError{Lock: h.lock, Token: h.token, Seen: known, Resource: g.resource()})
		}
	}
	return err
}

func (g Guard) otherLock(lock string, bound []string) error {
	return &fence.OtherLockError{Lock: lock, Bound: strings.Join(bound, ", "), Resource: g.resource()}
}

func (g Guard) resource() string { return cmp.Or(g.Resource, "DynamoDB item") }

// names are the locks that an item is bound to, sorted, or nil.
func names(v types.AttributeValue) []string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return []string{v.Value}
	case *types.AttributeValueMemberSS:
		return slices.Sorted(slices.Values(v.Value))
	}
	return nil
}

// seen is the token that an item has seen, or zero.
func seen(v types.AttributeValue) fence.Token {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0 // no guard wrote that
	}
	return fence.Token(i)
}
