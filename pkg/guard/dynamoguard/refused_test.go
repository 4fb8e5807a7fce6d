package dynamoguard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A condition whose parentheses end the pair that it is put into would be an
// alternative to the guard.
func TestNoConditionOfTheCallersGetsAroundTheGuard(t *testing.T) {
	x := newTable(t)
	for _, c := range []struct {
		condition string
		balanced  bool
	}{
		{"attribute_exists(id)) OR (attribute_exists(id)", false},
		{"attribute_exists(id) OR (attribute_exists(id)", false},
		{"attribute_exists(id))", false},
		{")(", false},
		{"(attribute_exists(id)", false},
		{"(attribute_exists(id)))", false},
		{"(attribute_exists(id))", true},
		{" ( attribute_exists(id) OR attribute_exists(a) ) ", true},
		{"(attribute_exists(id)) OR (attribute_exists(a))", true},
		{"attribute_exists(id) OR (attribute_exists(a) AND attribute_exists(b))", true},
		{" ", true},
	} {
		x.write("a", 6, "paid")
		in := x.becomes("a", "shipped")
		in.ConditionExpression = &c.condition
		transact := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: in.ConditionExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		}}}}
		for token, want := range map[fence.Token]error{5: fence.ErrStale, 6: nil} {
			if !c.balanced {
				want = fence.ErrInvalid
			}
			_, update := x.guard().UpdateItem(t.Context(), holding(token), in)
			_, whole := x.guard().TransactWriteItems(t.Context(), holding(token), transact)
			_, remove := x.guard().DeleteItem(t.Context(), holding(token), &dynamodb.DeleteItemInput{
				TableName: &x.name, Key: x.key("a"), ConditionExpression: &c.condition,
			})
			for name, err := range map[string]error{"update": update, "transaction": whole, "delete": remove} {
				if !errors.Is(err, want) || want == fence.ErrInvalid && !strings.Contains(err.Error(), "ConditionExpression") {
					t.Errorf("%d if %q: %s got error %v, want %v", token, c.condition, name, err, want)
				}
			}
		}
	}
}

// DynamoDB takes these beside no expression, and a delete that is sent as a put
// would lose them.
func TestParametersFromBeforeExpressionsAreRefusedByName(t *testing.T) {
	x := newTable(t)
	x.write("a", 5, "paid")
	g, h := x.guard(), holding(5)
	expected := map[string]types.ExpectedAttributeValue{"state": {Value: str("draft")}}
	update := func(field string, in dynamodb.UpdateItemInput) {
		t.Helper()
		in.TableName, in.Key = &x.name, x.key("a")
		_, err := g.UpdateItem(t.Context(), h, &in)
		x.wantNamed(err, field)
	}
	update("Expected", dynamodb.UpdateItemInput{Expected: expected})
	update("ConditionalOperator", dynamodb.UpdateItemInput{ConditionalOperator: types.ConditionalOperatorOr})
	update("AttributeUpdates", dynamodb.UpdateItemInput{AttributeUpdates: map[string]types.AttributeValueUpdate{"a": {Value: str("a")}}})
	_, err := g.PutItem(t.Context(), h, &dynamodb.PutItemInput{TableName: &x.name, Item: x.key("a"), Expected: expected})
	x.wantNamed(err, "Expected")
	_, err = g.DeleteItem(t.Context(), h, &dynamodb.DeleteItemInput{TableName: &x.name, Key: x.key("a"), Expected: expected})
	x.wantNamed(err, "Expected")
	_, err = g.DeleteItem(t.Context(), h, &dynamodb.DeleteItemInput{
		TableName: &x.name, Key: x.key("a"), ConditionalOperator: types.ConditionalOperatorAnd,
	})
	x.wantNamed(err, "ConditionalOperator")
	x.wantState("a", "paid")
}

func (x table) wantNamed(err error, field string) {
	x.Helper()
	if !errors.Is(err, fence.ErrInvalid) || !strings.Contains(err.Error(), field) {
		x.Errorf("got error %v, want that %s is refused", err, field)
	}
}

func TestAValueOfTheGuardsIsNotTheCallers(t *testing.T) {
	x := newTable(t)
	_, err := x.guard().UpdateItem(t.Context(), holding(5), &dynamodb.UpdateItemInput{
		TableName: &x.name, Key: x.key("a"), UpdateExpression: aws.String("SET a = :pawl_token0"),
		ExpressionAttributeValues: item{":pawl_token0": str("mine")},
	})
	x.wantNamed(err, ":pawl_token0")
	if i, err := x.get(t.Context(), x.client, "a"); err != nil || i != nil {
		t.Errorf("it is %v, error %v, want nothing", i, err)
	}
}
