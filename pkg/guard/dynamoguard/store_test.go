package dynamoguard_test

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
	"github.com/pawl-lock/pawl/pkg/guard/guardtest"
)

type item = dynamoguard.Item

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

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

// A way is how a [resource] writes.
type way string

const (
	byUpdate      way = "UpdateItem"
	byPut         way = "PutItem and DeleteItem"
	byTransact    way = "TransactWriteItems"
	byFence       way = "TransactFenced"
	byExpressions way = "expressions"
)

// store is a [guardtest.Store] of items in one table.
type store struct {
	table
	way way
}

func (s store) New(_ context.Context, locks ...string) (guardtest.Resource, error) {
	return resource{store: s, id: rand.Text(), locks: locks}, nil
}

func (s store) Reopen(_ context.Context, r guardtest.Resource, locks ...string) (guardtest.Resource, error) {
	again := r.(resource)
	again.client, again.locks = dynamodb.New(localtest.DynamoDBForTest(s).Options()), locks
	return again, nil
}

type resource struct {
	store
	id    string
	locks []string
}

func (r resource) guard() *dynamoguard.Guard {
	return &dynamoguard.Guard{Client: r.client, Locks: r.locks}
}

func (r resource) key() item { return item{"id": str(r.id)} }

// fenceKey is that of the item that stands for this one.
func (r resource) fenceKey() item {
	if r.way == byFence {
		return item{"id": str("fence of " + r.id)}
	}
	return r.key()
}

func (r resource) Write(ctx context.Context, h fence.Holding, s string) error {
	g := r.guard()
	content := item{"id": str(r.id), "text": str(s)}
	set, values, names := "SET #text = :text", item{":text": str(s)}, map[string]string{"#text": "text"}
	switch r.way {
	case byPut:
		_, err := g.PutItem(ctx, h, &dynamodb.PutItemInput{TableName: &r.name, Item: content})
		return err
	case byTransact:
		return r.transact(ctx, h, types.TransactWriteItem{Update: &types.Update{
			TableName: &r.name, Key: r.key(), UpdateExpression: &set, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		}})
	case byFence:
		return r.fenced(ctx, h, types.TransactWriteItem{Put: &types.Put{TableName: &r.name, Item: content}})
	case byExpressions:
		return r.express(ctx, h, g.Stamp(h, expression.Set(expression.Name("text"), expression.Value(s))))
	}
	_, err := g.UpdateItem(ctx, h, &dynamodb.UpdateItemInput{
		TableName: &r.name, Key: r.key(), UpdateExpression: &set, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return err
}

func (r resource) Delete(ctx context.Context, h fence.Holding) error {
	remove := types.TransactWriteItem{Delete: &types.Delete{TableName: &r.name, Key: r.key()}}
	switch r.way {
	case byTransact:
		return r.transact(ctx, h, remove)
	case byFence:
		return r.fenced(ctx, h, remove)
	case byExpressions:
		return r.express(ctx, h, r.guard().Tombstone(h, expression.Remove(expression.Name("text"))))
	}
	_, err := r.guard().DeleteItem(ctx, h, &dynamodb.DeleteItemInput{TableName: &r.name, Key: r.key()})
	return err
}

// transact writes to another item beside it.
func (r resource) transact(ctx context.Context, h fence.Holding, i types.TransactWriteItem) error {
	beside := types.TransactWriteItem{Put: &types.Put{TableName: &r.name, Item: item{"id": str("beside " + rand.Text())}}}
	_, err := r.guard().TransactWriteItems(ctx, h, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{beside, i}})
	return err
}

func (r resource) fenced(ctx context.Context, h fence.Holding, i types.TransactWriteItem) error {
	_, err := r.guard().TransactFenced(ctx, h, r.name, r.fenceKey(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{i}})
	return err
}

// express sends what the guard's expressions make, as the low level is used.
func (r resource) express(ctx context.Context, h fence.Holding, u expression.UpdateBuilder) error {
	g := r.guard()
	if len(r.locks) > 0 { // which may add one
		if err := r.Claim(ctx, h); err != nil {
			return err
		}
	}
	e, err := expression.NewBuilder().WithCondition(g.Condition(h)).WithUpdate(u).Build()
	if err != nil {
		return g.Refused(ctx, h, r.id, err)
	}
	_, err = r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.name, Key: r.key(), UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return g.Refused(ctx, h, r.id, err)
}

func (r resource) Claim(ctx context.Context, h fence.Holding) error {
	return r.guard().Claim(ctx, h, r.name, r.fenceKey())
}

func (r resource) Read(ctx context.Context) (string, bool, error) {
	i, err := r.get(ctx, r.client, r.id)
	if err != nil || (dynamoguard.Attributes{}).Absent(i) {
		return "", false, err
	}
	return i["text"].(*types.AttributeValueMemberS).Value, true, nil
}

func (r resource) Seen(ctx context.Context) (map[string]fence.Token, error) {
	return r.guard().Seen(ctx, r.name, r.fenceKey())
}

func (r resource) Reset(ctx context.Context, h fence.Holding) error {
	return r.guard().Reset(ctx, h, r.name, r.fenceKey())
}

func (r resource) Prune(ctx context.Context, before time.Time) error {
	only := "id = :id"
	_, err := r.guard().Prune(ctx, &dynamodb.ScanInput{
		TableName: &r.name, FilterExpression: &only, ExpressionAttributeValues: item{":id": r.fenceKey()["id"]},
	}, before)
	return err
}

func (r resource) Twice(between func()) guardtest.Resource {
	r.client = hooked(r.client, func(send func() (*http.Response, error)) (*http.Response, error) {
		a, err := send()
		if err != nil {
			return nil, err
		}
		_ = a.Body.Close() // lost
		between()
		return nil, io.ErrUnexpectedEOF // and the SDK sends again
	})
	return r
}

func (r resource) Asleep(stopped func()) guardtest.Resource {
	r.client = hooked(r.client, func(send func() (*http.Response, error)) (*http.Response, error) {
		stopped()
		return send()
	})
	return r
}

// hooked returns a client whose first write is in the hands of hook.
func hooked(client *dynamodb.Client, hook func(send func() (*http.Response, error)) (*http.Response, error)) *dynamodb.Client {
	o := client.Options()
	under, first := o.HTTPClient, new(atomic.Bool)
	o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
		send := func() (*http.Response, error) { return under.Do(r) }
		if writes := strings.HasSuffix(r.Header.Get("X-Amz-Target"), "Item") || strings.HasSuffix(r.Header.Get("X-Amz-Target"), "WriteItems"); writes &&
			!strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetItem") && first.CompareAndSwap(false, true) {
			return hook(send)
		}
		return send()
	})
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
	})
	return dynamodb.New(o)
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

func TestEveryWayToWriteIsGuarded(t *testing.T) {
	for _, w := range []way{byUpdate, byPut, byTransact, byFence, byExpressions} {
		t.Run(string(w), func(t *testing.T) {
			s := newTable(t)
			guardtest.Run(t, func(t *testing.T) guardtest.Store { s := s; s.TB = t; return store{s, w} })
		})
	}
}

func TestTheGuardStandsTheHammer(t *testing.T) {
	for _, w := range []way{byUpdate, byFence} {
		t.Run(string(w), func(t *testing.T) {
			guardtest.Hammer(t, func(t *testing.T) guardtest.Store { return store{newTable(t), w} })
		})
	}
}
