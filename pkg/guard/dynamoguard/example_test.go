package dynamoguard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
)

var (
	client *dynamodb.Client // dynamodb.NewFromConfig(cfg)
	orders = "orders"
)

// ship is an UpdateItem of the caller's own, with a condition of its own.
func ship(ctx context.Context, h fence.Holding) error {
	guard := &dynamoguard.Guard{Client: client}
	_, err := guard.UpdateItem(ctx, h, &dynamodb.UpdateItemInput{
		TableName:                &orders,
		Key:                      dynamoguard.Item{"id": &types.AttributeValueMemberS{Value: "42"}},
		ConditionExpression:      aws.String("#state = :paid"),
		UpdateExpression:         aws.String("SET #state = :shipped"),
		ExpressionAttributeNames: map[string]string{"#state": "state"},
		ExpressionAttributeValues: dynamoguard.Item{
			":paid": &types.AttributeValueMemberS{Value: "paid"}, ":shipped": &types.AttributeValueMemberS{Value: "shipped"},
		},
	})
	return err
}

// A holder that was replaced is told so, and stops.
func Example() {
	ctx := context.Background()
	for _, h := range []fence.Holding{ // lock.Held.Holding
		{Lock: "payments/orders/42", Token: 34},
		{Lock: "payments/orders/42", Token: 33},
		{Lock: "payments/orders/42", Token: 34},
	} {
		err := ship(ctx, h)
		var failed *types.ConditionalCheckFailedException
		switch {
		case errors.Is(err, fence.ErrStale):
			fmt.Println(h.Token, "stops: somebody else holds the lock")
		case errors.As(err, &failed):
			fmt.Println("the order is not paid, or was shipped")
		case err != nil:
			fmt.Println("unknown: the same write by the same holder may be repeated:", err)
		default:
			fmt.Println("shipped by", h.Token)
		}
	}
	// shipped by 34
	// 33 stops: somebody else holds the lock
	// the order is not paid, or was shipped
}

// A new holder that reads before it writes claims the item first: then what it
// read stays until it writes.
func ExampleGuard_Claim() {
	ctx := context.Background()
	guard := &dynamoguard.Guard{Client: client}
	key := dynamoguard.Item{"id": &types.AttributeValueMemberS{Value: "42"}}
	if err := guard.Claim(ctx, fence.Holding{Lock: "payments/orders/42", Token: 35}, orders, key); err != nil {
		fmt.Println("stop", err)
		return
	}
	// GetItem with ConsistentRead, then a guarded write.
	fmt.Println(guard.Seen(ctx, orders, key))
	// map[payments/orders/42:35] <nil>
}

// What is sent, in the words of DynamoDB.
func ExampleGuard_Condition() {
	guard := new(dynamoguard.Guard)
	h := fence.Holding{Lock: "payments/orders/42", Token: 34}
	e, err := expression.NewBuilder().WithCondition(guard.Condition(h)).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*e.Condition())
	fmt.Println(e.Names())
	// Output:
	// (((attribute_not_exists (#0)) AND (attribute_not_exists (#1)) AND (NOT (attribute_exists (#2)))) AND (attribute_not_exists (#3))) OR (((#0 = :0) AND (attribute_exists (#1))) AND (#3 <= :1))
	// map[#0:pawl_lock #1:pawl_write #2:pawl_tombstone #3:pawl_fence]
}

// The examples need an engine, so it is a test that runs them.
func TestTheExamplesDoWhatTheySay(t *testing.T) {
	x := newTable(t)
	client, orders = x.client, x.name
	x.write("42", 5, "paid")
	const shipped = "shipped by 34\n33 stops: somebody else holds the lock\nthe order is not paid, or was shipped\n"
	for _, e := range []struct {
		run  func()
		want string
	}{{Example, shipped}, {ExampleGuard_Claim, "map[payments/orders/42:35] <nil>\n"}} {
		if got := printed(t, e.run); got != e.want {
			t.Errorf("printed %q, want %q", got, e.want)
		}
	}
}

func printed(t *testing.T, run func()) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	run()
	os.Stdout = stdout
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
