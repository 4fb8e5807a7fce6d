package dynamoguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Claim has the item see the tokens and changes nothing else. A new holder that
// is to read the item, decide, and write, claims it first: until then a write of
// the holder before it is still accepted, and would change what was read. Read
// with ConsistentRead afterwards.
//
// It takes one request, or two if there is no such item yet. That leaves a
// tombstone.
func (g Guard) Claim(ctx context.Context, client *dynamodb.Client, table string, key map[string]types.AttributeValue) error {
	var attribute string
	for attribute = range key {
		break // any part of the key tells whether there is an item
	}
	if attribute == "" {
		return errors.New("dynamoguard: claim: the key is empty")
	}
	there := expression.NameNoDotSplit(attribute)
	var err error
	for range 3 { // an item that others create meanwhile stays, unless somebody deletes without a guard
		err = g.claim(ctx, client, table, key, there.AttributeExists().And(g.Condition()), g.remember(expression.UpdateBuilder{}))
		if !missing(err) {
			break
		}
		err = g.claim(ctx, client, table, key, there.AttributeNotExists().And(g.Condition()), g.Tombstone(expression.UpdateBuilder{}))
		var failed *types.ConditionalCheckFailedException
		if !errors.As(err, &failed) {
			break
		}
	}
	if err = g.Refused(ctx, err); err != nil {
		return fmt.Errorf("dynamoguard: claim: %w", err)
	}
	return nil
}

func (g Guard) claim(ctx context.Context, client *dynamodb.Client, table string, key map[string]types.AttributeValue, c expression.ConditionBuilder, u expression.UpdateBuilder) error {
	e, err := expression.NewBuilder().WithCondition(c).WithUpdate(u).Build()
	if err != nil {
		return err
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &table,
		Key:                                 key,
		UpdateExpression:                    e.Update(),
		ConditionExpression:                 e.Condition(),
		ExpressionAttributeNames:            e.Names(),
		ExpressionAttributeValues:           e.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// missing reports whether the condition failed because there is no item.
func missing(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed) && len(failed.Item) == 0
}
