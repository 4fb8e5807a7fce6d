package dynamoguard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
	"github.com/pawl-lock/pawl/pkg/guard/guardtest"
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

var (
	id   = expression.Name("id")
	text = expression.Name("text")
)

// A table is a new one, with the key "id".
type table struct {
	testing.TB
	client *dynamodb.Client
	name   string
}

func newTable(t testing.TB) table {
	t.Helper()
	x := table{t, dynamodb.New(localtest.DynamoDBForTest(t).Options()), "guarded-" + rand.Text()}
	_, err := x.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            &x.name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(x.client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &x.name}, 60e9); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = x.client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &x.name}) // the engine may be the user's
	})
	return x
}

// get reads an item.
func (x table) get(ctx context.Context, client *dynamodb.Client, name string) (item, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &x.name, Key: item{"id": str(name)}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// update is the caller's own request, guarded by g.
func (x table) update(ctx context.Context, client *dynamodb.Client, name string, g dynamoguard.Guard, c expression.ConditionBuilder, u expression.UpdateBuilder) error {
	e, err := expression.NewBuilder().WithCondition(c).WithUpdate(u).Build()
	if err != nil {
		return g.Refused(ctx, err)
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &x.name,
		Key:                                 item{"id": str(name)},
		UpdateExpression:                    e.Update(),
		ConditionExpression:                 e.Condition(),
		ExpressionAttributeNames:            e.Names(),
		ExpressionAttributeValues:           e.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return g.Refused(ctx, err)
}

// put is the same by PutItem.
func (x table) put(ctx context.Context, client *dynamodb.Client, g dynamoguard.Guard, c expression.ConditionBuilder, content item) error {
	e, err := expression.NewBuilder().WithCondition(c).Build()
	if err != nil {
		return g.Refused(ctx, err)
	}
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &x.name,
		Item:                                content,
		ConditionExpression:                 e.Condition(),
		ExpressionAttributeNames:            e.Names(),
		ExpressionAttributeValues:           e.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return g.Refused(ctx, err)
}

// transact is the same in a transaction, as the second of its items.
func (x table) transact(ctx context.Context, client *dynamodb.Client, name string, g dynamoguard.Guard, c expression.ConditionBuilder, u expression.UpdateBuilder) error {
	e, err := expression.NewBuilder().WithCondition(c).WithUpdate(u).Build()
	if err != nil {
		return g.Refused(ctx, err)
	}
	_, err = client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: &x.name, Item: item{"id": str("beside " + name + rand.Text())}}},
		{Update: &types.Update{
			TableName:                           &x.name,
			Key:                                 item{"id": str(name)},
			UpdateExpression:                    e.Update(),
			ConditionExpression:                 e.Condition(),
			ExpressionAttributeNames:            e.Names(),
			ExpressionAttributeValues:           e.Values(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
	}})
	err = g.RefusedAt(ctx, 1, err)
	if conflict := (*types.TransactionCanceledException)(nil); errors.As(err, &conflict) && aws.ToString(conflict.CancellationReasons[1].Code) == "TransactionConflict" {
		return errors.Join(guardtest.ErrNotApplied, err)
	}
	return err
}

// A way is how a [resource] writes.
type way string

const (
	byUpdate   way = "UpdateItem"
	byPut      way = "PutItem"
	byTransact way = "TransactWriteItems"
)

// store is a [guardtest.Store] of items in one table.
type store struct {
	table
	way way
}

func (s store) New(_ context.Context, locks ...string) (guardtest.Resource, error) {
	return resource{s, rand.Text(), locks}, nil
}

func (s store) Reopen(_ context.Context, r guardtest.Resource) (guardtest.Resource, error) {
	again := r.(resource)
	again.client = dynamodb.New(localtest.DynamoDBForTest(s).Options())
	return again, nil
}

type resource struct {
	store
	id    string
	locks []string
}

func (r resource) guard(lock string, token fence.Token) dynamoguard.Guard {
	return dynamoguard.Guard{Lock: lock, Token: token, Locks: r.locks}
}

func (r resource) Write(ctx context.Context, lock string, token fence.Token, s string) error {
	g := r.guard(lock, token)
	if r.way == byPut && len(r.locks) == 0 {
		content := item{"id": str(r.id), "text": str(s)}
		if err := g.StampItem(content); err != nil {
			return err
		}
		return r.put(ctx, r.client, g, g.Condition(), content)
	}
	return r.change(ctx, g, g.Stamp(expression.Set(text, expression.Value(s))))
}

func (r resource) Delete(ctx context.Context, lock string, token fence.Token) error {
	g := r.guard(lock, token)
	if r.way == byPut && len(r.locks) == 0 {
		content := item{"id": str(r.id)}
		if err := g.TombstoneItem(content); err != nil {
			return err
		}
		return r.put(ctx, r.client, g, g.Condition(), content)
	}
	return r.change(ctx, g, g.Tombstone(expression.Remove(text)))
}

func (r resource) change(ctx context.Context, g dynamoguard.Guard, u expression.UpdateBuilder) error {
	if r.way == byTransact {
		return r.transact(ctx, r.client, r.id, g, g.Condition(), u)
	}
	return r.update(ctx, r.client, r.id, g, g.Condition(), u)
}

func (r resource) Claim(ctx context.Context, lock string, token fence.Token) error {
	return r.guard(lock, token).Claim(ctx, r.client, r.table.name, item{"id": str(r.id)})
}

func (r resource) Read(ctx context.Context) (string, bool, error) {
	i, err := r.get(ctx, r.client, r.id)
	if err != nil || (dynamoguard.Attributes{}).Absent(i) {
		return "", false, err
	}
	return i["text"].(*types.AttributeValueMemberS).Value, true, nil
}

func TestEveryWayToWriteIsGuarded(t *testing.T) {
	for _, w := range []way{byUpdate, byPut, byTransact} {
		t.Run(string(w), func(t *testing.T) {
			s := newTable(t)
			guardtest.Run(t, func(t *testing.T) guardtest.Store { s := s; s.TB = t; return store{s, w} })
		})
	}
}

func TestTheGuardStandsTheHammer(t *testing.T) {
	guardtest.Hammer(t, func(t *testing.T) guardtest.Store { return store{newTable(t), byUpdate} })
}
