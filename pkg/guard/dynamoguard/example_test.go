package dynamoguard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
)

// ship is an UpdateItem of the caller's own, with a condition of its own. What
// the guard adds is marked.
func ship(ctx context.Context, client *dynamodb.Client, orders string, token fence.Token) error {
	guard := dynamoguard.Guard{
		Lock:      "payments/orders/42",
		Token:     token,
		Resource:  orders + "/42",
		OnRefusal: fence.LogRefusals(slog.Default()),
	}
	state := expression.Name("state")
	e, err := expression.NewBuilder().
		WithCondition(state.Equal(expression.Value("paid")).And(guard.Condition())). // guard
		WithUpdate(guard.Stamp(expression.Set(state, expression.Value("shipped")))). // guard
		Build()
	if err != nil {
		return guard.Refused(ctx, err) // guard
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &orders,
		Key:                                 map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "42"}},
		ConditionExpression:                 e.Condition(),
		UpdateExpression:                    e.Update(),
		ExpressionAttributeNames:            e.Names(),
		ExpressionAttributeValues:           e.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld, // guard
	})
	return guard.Refused(ctx, err) // guard
}

// A holder that was replaced is told so, and stops.
func Example() {
	var client *dynamodb.Client // the caller's
	var token fence.Token       // of the lease

	err := ship(context.Background(), client, "orders", token)
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.Is(err, fence.ErrStale):
		fmt.Println("somebody else holds the lock: stop", err)
	case errors.As(err, &failed):
		fmt.Println("the order is not paid")
	case err != nil:
		fmt.Println("unknown: the same write with the same token may be repeated", err)
	}
}

// A new holder that reads before it writes claims the item first: then what it
// read stays until it writes.
func ExampleGuard_Claim() {
	var client *dynamodb.Client
	var token fence.Token
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "42"}}

	guard := dynamoguard.Guard{Lock: "payments/orders/42", Token: token}
	if err := guard.Claim(context.Background(), client, "orders", key); err != nil {
		fmt.Println("stop", err)
		return
	}
	// GetItem with ConsistentRead, then a guarded write.
}

// What is sent, in the words of DynamoDB.
func ExampleGuard_Condition() {
	guard := dynamoguard.Guard{Lock: "payments/orders/42", Token: 34}
	e, err := expression.NewBuilder().WithCondition(guard.Condition()).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*e.Condition())
	fmt.Println(e.Names())
	// Output:
	// ((attribute_not_exists (#0)) OR (#0 = :0)) AND ((attribute_not_exists (#1)) OR (#1 <= :1))
	// map[#0:fence_lock #1:fence]
}

// Deleting is writing a tombstone, by PutItem here. An update of the caller that
// removes attributes takes [dynamoguard.Guard.Tombstone] instead.
func ExampleGuard_TombstoneItem() {
	guard := dynamoguard.Guard{Lock: "payments/orders/42", Token: 34}
	order := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "42"}}
	if err := guard.TombstoneItem(order); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(guard.Attributes.Absent(order))
	// Output: true
}

// Several items are changed together in a transaction, each with its guard.
func ExampleGuard_RefusedAt() {
	ctx := context.Background()
	guard := dynamoguard.Guard{Lock: "payments/orders/42", Token: 34}
	var client *dynamodb.Client
	var order, invoice types.TransactWriteItem // made as in the first example

	_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{order, invoice},
	})
	for i := range 2 {
		err = guard.RefusedAt(ctx, i, err)
	}
	if errors.Is(err, fence.ErrStale) {
		fmt.Println("stop", err)
	}
}

// Tokens may come from whatever only grows, up to [fence.Max].
func ExampleGuard_tokensFromElsewhere() {
	for source, number := range map[string]int64{
		"the create revision of a key in etcd": 1_234_567, // mutex.Header().Revision
		"a counter in Redis":                   34,        // rdb.Incr(ctx, "payments/orders/42:token").Val()
		"the clock in nanoseconds, no counter": 1_785_000_000_000_000_000,
	} {
		guard := dynamoguard.Guard{Lock: "payments/orders/42", Token: fence.Token(number)}
		fmt.Printf("%s: %v\n", source, guard.Check())
	}
	// Unordered output:
	// the create revision of a key in etcd: <nil>
	// a counter in Redis: <nil>
	// the clock in nanoseconds, no counter: invalid fencing token: 1785000000000000000, want 1 to 999999999999999
}
