package dynamoguard_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
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
