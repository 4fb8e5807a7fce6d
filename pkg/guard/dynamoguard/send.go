package dynamoguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// UpdateItem completes the caller's request, which stays as it is, and sends it.
func (g *Guard) UpdateItem(ctx context.Context, h fence.Holding,
	in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	return g.updateItem(ctx, h, in, live)
}

func (g *Guard) updateItem(ctx context.Context, h fence.Holding,
	in *dynamodb.UpdateItemInput, m mark) (*dynamodb.UpdateItemOutput, error) {
	var out *dynamodb.UpdateItemOutput
	mine := request{
		in.ConditionExpression, aws.String(aws.ToString(in.UpdateExpression)),
		in.ExpressionAttributeNames, in.ExpressionAttributeValues,
	}
	last, err := g.send(ctx, h, in.TableName, in.Key, nil, func(c claim, _ map[string]fence.Token) error {
		r, err := c.completed(mine, nil, m)
		if err != nil {
			return err
		}
		whole := *in
		whole.ConditionExpression, whole.UpdateExpression = r.condition, r.update
		whole.ExpressionAttributeNames, whole.ExpressionAttributeValues = r.names, r.values
		whole.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		out, err = g.Client.UpdateItem(ctx, &whole)
		return err
	})
	if last == nil || err != nil {
		return out, err
	}
	switch in.ReturnValues {
	case "", types.ReturnValueNone:
		return new(dynamodb.UpdateItemOutput), nil
	case types.ReturnValueAllNew:
		return &dynamodb.UpdateItemOutput{Attributes: last}, nil
	}
	return nil, answerLost(in.TableName, in.Key)
}

// PutItem completes the caller's request, which stays as it is, and sends it. If
// the item takes the tokens of locks that are not held, and these have been seen,
// it takes two requests.
func (g *Guard) PutItem(ctx context.Context, h fence.Holding,
	in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	return g.putItem(ctx, h, in, nil)
}

// DeleteItem deletes an item with all its attributes, but for the key and what the
// guard knows: it leaves a tombstone.
func (g *Guard) DeleteItem(ctx context.Context, h fence.Holding,
	in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
	put := &dynamodb.PutItemInput{
		TableName: in.TableName, Item: in.Key, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValues: in.ReturnValues, ReturnConsumedCapacity: in.ReturnConsumedCapacity,
		ReturnItemCollectionMetrics: in.ReturnItemCollectionMetrics,
	}
	out, err := g.putItem(ctx, h, put, in.Key)
	if err != nil {
		return nil, err
	}
	return &dynamodb.DeleteItemOutput{
		Attributes: out.Attributes, ConsumedCapacity: out.ConsumedCapacity,
		ItemCollectionMetrics: out.ItemCollectionMetrics, ResultMetadata: out.ResultMetadata,
	}, nil
}

// putItem puts an item or, if its key is given, a tombstone.
func (g *Guard) putItem(ctx context.Context, h fence.Holding,
	in *dynamodb.PutItemInput, key Item) (*dynamodb.PutItemOutput, error) {
	var out *dynamodb.PutItemOutput
	mine := request{in.ConditionExpression, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues}
	none := make(map[string]fence.Token)
	last, err := g.send(ctx, h, in.TableName, key, none, func(c claim, seen map[string]fence.Token) error {
		r, err := c.completed(mine, seen, live)
		if err != nil {
			return err
		}
		whole := *in
		if whole.Item, err = c.stamped(in.Item, seen, key != nil); err != nil {
			return err
		}
		whole.ConditionExpression = r.condition
		whole.ExpressionAttributeNames, whole.ExpressionAttributeValues = r.names, r.values
		whole.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		out, err = g.Client.PutItem(ctx, &whole)
		return err
	})
	if last == nil || err != nil {
		return out, err
	}
	if in.ReturnValues == "" || in.ReturnValues == types.ReturnValueNone {
		return new(dynamodb.PutItemOutput), nil
	}
	return nil, answerLost(in.TableName, key)
}

func answerLost(table *string, key Item) error {
	return fmt.Errorf("dynamoguard: %s: %w", resource(table, key), ErrAnswerLost)
}

// attempts are how often a request is completed anew, because an item was widened
// or others' tokens were seen meanwhile.
const attempts = 10

// send has a write made, completed as it must be. It returns the item if the write
// was made in an earlier attempt, whose answer was lost.
func (g *Guard) send(ctx context.Context, h fence.Holding, table *string, key Item, assumed map[string]fence.Token,
	write func(c claim, assumed map[string]fence.Token) error) (Item, error) {
	name := resource(table, key)
	c, err := g.claim(h, name)
	if err != nil {
		return nil, g.Observer.See(ctx, err)
	}
	if g.Client == nil {
		return nil, errNoClient
	}
	for try := 1; ; try++ {
		err := write(c, assumed)
		var failed *types.ConditionalCheckFailedException
		if !errors.As(err, &failed) {
			return nil, err
		}
		verdict, seen, refusal := c.judge(failed.Item, assumed, name)
		switch {
		case refusal != nil:
			return nil, g.Observer.See(ctx, refusal)
		case verdict == applied:
			return failed.Item, nil
		case verdict == own || try == attempts:
			return nil, err
		case verdict == narrow:
			if err := g.widen(ctx, c, table, failed.Item, seen); err != nil {
				return nil, fmt.Errorf("dynamoguard: add locks to %s: %w: %w", name, fence.ErrNotApplied, err)
			}
		}
		if assumed != nil {
			assumed = seen
		}
	}
}
