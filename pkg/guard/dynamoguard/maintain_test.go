package dynamoguard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
)

// Somebody took one of the guard's attributes away, and nobody may write any more.
func TestResetRepairsAnItemThatLacksOneOfTheGuardsAttributes(t *testing.T) {
	x := newTable(t)
	for _, lost := range []string{"pawl_write", "pawl_lock", "pawl_fence"} {
		x.write(lost, 5, "paid")
		if _, err := x.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &x.name, Key: x.key(lost), UpdateExpression: aws.String("REMOVE " + lost),
		}); err != nil {
			t.Fatal(err)
		}
		if err := x.guard().Claim(t.Context(), holding(6), x.name, x.key(lost)); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("without %s: claimed with error %v", lost, err)
		}
		if err := x.guard().Reset(t.Context(), holding(6), x.name, x.key(lost)); err != nil {
			t.Errorf("without %s: %v", lost, err)
		}
		x.write(lost, 6, "shipped")
		if _, err := x.guard().UpdateItem(t.Context(), holding(5), x.becomes(lost, "late")); !isStale(err) {
			t.Errorf("without %s: got error %v, want that 5 is stale", lost, err)
		}
	}
	for name, mine := range map[string]item{
		"a height": {"pawl_fence": &types.AttributeValueMemberN{Value: "180"}},
		"a text":   {"pawl_fence": str("wooden"), "pawl_lock": str(order)},
	} {
		mine["id"] = str(name)
		if _, err := x.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &x.name, Item: mine}); err != nil {
			t.Fatal(err)
		}
		if err := x.guard().Reset(t.Context(), holding(6), x.name, x.key(name)); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%s, which is the caller's, was reset with error %v", name, err)
		}
	}
}

func TestAGuardWithoutAClientSaysSo(t *testing.T) {
	x := newTable(t)
	g, ctx, h := new(dynamoguard.Guard), t.Context(), holding(5)
	_, update := g.UpdateItem(ctx, h, x.becomes("a", "paid"))
	_, put := g.PutItem(ctx, h, &dynamodb.PutItemInput{TableName: &x.name, Item: x.key("a")})
	_, remove := g.DeleteItem(ctx, h, &dynamodb.DeleteItemInput{TableName: &x.name, Key: x.key("a")})
	_, transact := g.TransactWriteItems(ctx, h, new(dynamodb.TransactWriteItemsInput))
	_, fenced := g.TransactFenced(ctx, h, x.name, x.key("a"), new(dynamodb.TransactWriteItemsInput))
	_, seen := g.Seen(ctx, x.name, x.key("a"))
	_, prune := g.Prune(ctx, &dynamodb.ScanInput{TableName: &x.name}, time.Now())
	for name, err := range map[string]error{
		"UpdateItem": update, "PutItem": put, "DeleteItem": remove, "TransactWriteItems": transact, "TransactFenced": fenced,
		"Claim": g.Claim(ctx, h, x.name, x.key("a")), "Seen": seen, "Reset": g.Reset(ctx, h, x.name, x.key("a")), "Prune": prune,
	} {
		if err == nil || !strings.Contains(err.Error(), "Guard.Client is missing") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
