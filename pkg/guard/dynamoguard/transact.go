package dynamoguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// TransactWriteItems completes every write of the caller's request, which stays as
// it is, and sends it: each item is guarded. A Delete leaves a tombstone; a
// ConditionCheck stays what it is.
//
// Its ClientRequestToken makes what the SDK sends again the same call, so a refusal
// means that nothing was changed. A transaction that DynamoDB canceled because
// another was under way is [fence.ErrNotApplied].
func (g *Guard) TransactWriteItems(ctx context.Context, h fence.Holding,
	in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	return g.transact(ctx, h, in, true)
}

// TransactFenced guards all items of a transaction by one more, which stands for
// the lock and has no data. The caller's writes stay as they are, plain deletes
// too. All who write these items must do so by this item. It costs two more write
// units, and transactions by one item run one after the other.
func (g *Guard) TransactFenced(ctx context.Context, h fence.Holding, table string, key Item,
	in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	fenced := *in
	first := types.TransactWriteItem{Update: &types.Update{TableName: &table, Key: key}}
	fenced.TransactItems = append([]types.TransactWriteItem{first}, in.TransactItems...)
	return g.transact(ctx, h, &fenced, false)
}

// transact completes all items, or the first as a fence.
func (g *Guard) transact(ctx context.Context, h fence.Holding,
	in *dynamodb.TransactWriteItemsInput, all bool) (*dynamodb.TransactWriteItemsOutput, error) {
	c, err := g.claim(h, "DynamoDB transaction")
	if err != nil {
		return nil, g.Observer.See(ctx, err)
	}
	if g.Client == nil {
		return nil, errNoClient
	}
	assumed := make([]map[string]fence.Token, len(in.TransactItems))
	for try := 1; ; try++ {
		whole := *in
		whole.TransactItems = slices.Clone(in.TransactItems)
		if whole.ClientRequestToken == nil || try > 1 {
			whole.ClientRequestToken = aws.String(rand.Text())
		}
		for i := range whole.TransactItems {
			if !all && i > 0 {
				break
			}
			if assumed[i] == nil {
				assumed[i] = make(map[string]fence.Token)
			}
			m := live
			if !all {
				m = gone // a fence has no data
			}
			if whole.TransactItems[i], err = c.completedItem(in.TransactItems[i], assumed[i], m); err != nil {
				return nil, err
			}
		}
		out, err := g.Client.TransactWriteItems(ctx, &whole)
		var canceled *types.TransactionCanceledException
		if !errors.As(err, &canceled) {
			return out, err
		}
		next, refusal := g.reasons(ctx, c, in.TransactItems, canceled, assumed, all)
		switch {
		case next == applied:
			return new(dynamodb.TransactWriteItemsOutput), nil
		case refusal != nil:
			return nil, g.Observer.See(ctx, fence.Settled(refusal))
		case next == own || try == attempts:
			return nil, fmt.Errorf("%w: %w", fence.ErrNotApplied, err)
		}
	}
}

// reasons looks at why a transaction was canceled, and does what the next needs. It
// returns changed where another attempt may pass.
func (g *Guard) reasons(ctx context.Context, c claim, items []types.TransactWriteItem,
	canceled *types.TransactionCanceledException, assumed []map[string]fence.Token, all bool) (next verdict, err error) {
	for i, r := range canceled.CancellationReasons {
		if i >= len(items) || !all && i > 0 {
			break
		}
		if aws.ToString(r.Code) != "ConditionalCheckFailed" {
			continue
		}
		table, key, isPut := target(items[i])
		if table == nil {
			continue
		}
		was := assumed[i]
		if !isPut {
			was = nil
		}
		verdict, seen, err := c.judge(r.Item, was, resource(table, key))
		if err != nil {
			return own, err
		}
		switch verdict {
		case applied:
			return applied, nil
		case narrow:
			if err := g.widen(ctx, c, table, r.Item, seen); err != nil {
				return own, fmt.Errorf("add locks to %s: %w: %w", resource(table, key), fence.ErrNotApplied, err)
			}
			assumed[i], next = seen, changed
		case changed:
			assumed[i], next = seen, changed
		case own:
			return own, nil // a condition of the caller's
		}
	}
	return next, nil
}

// target is what an item of a transaction writes to, and nothing for a check.
func target(i types.TransactWriteItem) (table *string, key Item, isPut bool) {
	switch {
	case i.Update != nil:
		return i.Update.TableName, i.Update.Key, false
	case i.Put != nil:
		return i.Put.TableName, nil, true
	case i.Delete != nil:
		return i.Delete.TableName, i.Delete.Key, true
	}
	return nil, nil, false
}

// completedItem is one item of a transaction with the whole guard.
func (c claim) completedItem(i types.TransactWriteItem, seen map[string]fence.Token,
	m mark) (types.TransactWriteItem, error) {
	put := i.Put
	if d := i.Delete; d != nil {
		put = &types.Put{
			TableName: d.TableName, Item: d.Key, ConditionExpression: d.ConditionExpression,
			ExpressionAttributeNames: d.ExpressionAttributeNames, ExpressionAttributeValues: d.ExpressionAttributeValues,
		}
	}
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch {
	case i.Update != nil:
		u := *i.Update
		r, err := c.completed(request{u.ConditionExpression, aws.String(aws.ToString(u.UpdateExpression)),
			u.ExpressionAttributeNames, u.ExpressionAttributeValues}, nil, m)
		u.ConditionExpression, u.UpdateExpression = r.condition, r.update
		u.ExpressionAttributeNames, u.ExpressionAttributeValues = r.names, r.values
		u.ReturnValuesOnConditionCheckFailure = old
		return types.TransactWriteItem{Update: &u}, err
	case put != nil:
		p := *put
		mine := request{p.ConditionExpression, nil, p.ExpressionAttributeNames, p.ExpressionAttributeValues}
		r, err := c.completed(mine, seen, live)
		if err == nil {
			p.Item, err = c.stamped(p.Item, seen, i.Delete != nil)
		}
		p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues = r.condition, r.names, r.values
		p.ReturnValuesOnConditionCheckFailure = old
		return types.TransactWriteItem{Put: &p}, err
	}
	return i, nil
}
