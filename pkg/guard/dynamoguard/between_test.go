package dynamoguard_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/fence"
)

// What a guard has read is old when it writes. These tests let somebody in between.

const cart = "payments/carts/42"

// first has a request reach the table after somebody else's.
func first(theirs func()) faultproxy.Fault {
	return func(e *faultproxy.Exchange) {
		theirs()
		faultproxy.Pass(e)
	}
}

func TestALockThatIsAddedMovesNoTokenBackThatCameMeanwhile(t *testing.T) {
	x := newTable(t)
	slow, p := x.through()
	x.write("a", 5, "five")
	g := slow.guard()
	g.Locks = []string{order, cart}
	p.Next("UpdateItem", faultproxy.Pass, first(func() { x.write("a", 6, "six") })) // the second one adds the lock
	if _, err := g.UpdateItem(t.Context(), holding(5), slow.becomes("a", "late")); !isStale(err) {
		t.Errorf("got error %v, want that 5 is stale", err)
	}
	x.wantState("a", "six")
	if seen, err := g.Seen(t.Context(), x.name, x.key("a")); err != nil || seen[order] != 6 {
		t.Errorf("it has seen %v, error %v, want 6", seen, err)
	}
}

func TestAResetThatIsOvertakenIsNotApplied(t *testing.T) {
	x := newTable(t)
	slow, p := x.through()
	x.write("a", 9, "nine")
	for name, theirs := range map[string]fence.Token{"a": 10, "b": 10} { // a was guarded when it was read, and b was not
		p.Next("UpdateItem", first(func() { x.write(name, theirs, "ten") }))
		if err := slow.guard().Reset(t.Context(), holding(5), x.name, x.key(name)); !errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("%s: got error %v, want ErrNotApplied", name, err)
		}
		if seen, err := x.guard().Seen(t.Context(), x.name, x.key(name)); err != nil || seen[order] != 10 {
			t.Errorf("%s: it has seen %v, error %v, want 10", name, seen, err)
		}
	}
}

// DynamoDB takes the same token for the same request. The next attempt is another.
func TestEachAttemptAtATransactionHasATokenOfItsOwn(t *testing.T) {
	x := newTable(t)
	slow, p := x.through()
	x.write("a", 5, "five")
	g := slow.guard()
	g.Locks = []string{order, cart} // so the first attempt finds fewer
	in := slow.becomes("a", "shipped")
	if _, err := g.TransactWriteItems(t.Context(), holding(5), &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String("the caller's"),
		TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		}}},
	}); err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, e := range p.Seen("TransactWriteItems") {
		var sent struct{ ClientRequestToken string }
		if err := json.Unmarshal(e.Body, &sent); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, sent.ClientRequestToken)
	}
	if len(tokens) != 2 || tokens[0] != "the caller's" || tokens[1] == tokens[0] || tokens[1] == "" {
		t.Errorf("sent %q, want the caller's and another", tokens)
	}
	x.wantState("a", "shipped")
}

// The id of the write is another in each call, so the caller's token names no call
// again, as the documentation says.
func TestTheCallersTokenOfATransactionIsForOneCall(t *testing.T) {
	x := newTable(t)
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("the caller's"), TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: &x.name, Item: x.key("a")}},
	}}
	if _, err := x.guard().TransactWriteItems(t.Context(), holding(5), in); err != nil {
		t.Fatal(err)
	}
	var mismatch *types.IdempotentParameterMismatchException
	if _, err := x.guard().TransactWriteItems(t.Context(), holding(5), in); !errors.As(err, &mismatch) {
		t.Errorf("got error %v, want IdempotentParameterMismatchException", err)
	}
}
