package dynamoguard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
)

const order = "payments/orders/42"

func holding(t fence.Token) fence.Holding { return fence.Holding{Lock: order, Token: t} }

func (x table) guard() *dynamoguard.Guard { return &dynamoguard.Guard{Client: x.client} }

func (x table) key(name string) item { return item{"id": str(name)} }

// becomes is the caller's own request.
func (x table) becomes(name, state string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &x.name, Key: x.key(name), UpdateExpression: aws.String("SET #s = :s"),
		ExpressionAttributeNames: map[string]string{"#s": "state"}, ExpressionAttributeValues: item{":s": str(state)},
	}
}

// write writes a new state with the token, whatever the state is.
func (x table) write(name string, token fence.Token, s string) {
	x.Helper()
	if _, err := x.guard().UpdateItem(x.Context(), holding(token), x.becomes(name, s)); err != nil {
		x.Fatal(err)
	}
}

// wantState checks what the item says, where "" is no item.
func (x table) wantState(name, want string) {
	x.Helper()
	i, err := x.get(x.Context(), x.client, name)
	if err != nil {
		x.Fatal(err)
	}
	got := ""
	if s, ok := i["state"].(*types.AttributeValueMemberS); ok && !(dynamoguard.Attributes{}).Absent(i) {
		got = s.Value
	}
	if got != want {
		x.Errorf("%s: the state is %q, want %q", name, got, want)
	}
}

func isStale(err error) bool { return errors.Is(err, fence.ErrStale) }

func isOwn(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}

func TestTheGuardAndTheCallersConditionMustBothHold(t *testing.T) {
	x := newTable(t)
	for name, c := range map[string]struct {
		token     fence.Token
		condition string
		want      func(error) bool
	}{
		"both hold":                   {5, "#s = :paid", nil},
		"only the guard":              {5, "#s = :new", isOwn},
		"only the caller's":           {4, "#s = :paid", isStale},
		"neither":                     {4, "#s = :new", isStale},
		"an alternative that holds":   {5, "#s = :new OR #s = :paid", nil},
		"an alternative of the stale": {4, "#s = :new OR #s = :paid", isStale},
		"a negation":                  {4, "NOT #s = :new", isStale},
	} {
		x.write(name, 5, "paid")
		in := x.becomes(name, "shipped")
		in.ConditionExpression = &c.condition
		for _, v := range []string{"paid", "new"} {
			if strings.Contains(c.condition, ":"+v) {
				in.ExpressionAttributeValues[":"+v] = str(v)
			}
		}
		before := *in
		_, err := x.guard().UpdateItem(t.Context(), holding(c.token), in)
		if c.want == nil && err != nil || c.want != nil && !c.want(err) {
			t.Errorf("%s: got error %v", name, err)
		}
		if c.want == nil {
			x.wantState(name, "shipped")
		} else {
			x.wantState(name, "paid")
		}
		if in.ConditionExpression != before.ConditionExpression || len(in.ExpressionAttributeNames) != 1 || in.ReturnValuesOnConditionCheckFailure != "" {
			t.Errorf("%s: the caller's request was changed: %+v", name, in)
		}
	}
}

// Whatever the caller's expression is, the guard's part of it is in the right place.
func TestEveryFormOfUpdateIsCompleted(t *testing.T) {
	x := newTable(t)
	for i, c := range []struct {
		update string
		values item
	}{
		{"", nil},
		{"SET a = :v", item{":v": str("v")}},
		{" set a=:v,b=:v", item{":v": str("v")}},
		{"SET a = if_not_exists(a, :v), b = list_append(:l, :l)\n", item{":v": str("v"), ":l": &types.AttributeValueMemberL{}}},
		{"REMOVE a", nil},
		{"remove a, b SET c = :v", item{":v": str("v")}},
		{"ADD n :n", item{":n": &types.AttributeValueMemberN{Value: "1"}}},
		{"ADD n :n REMOVE a SET b = :v", item{":n": &types.AttributeValueMemberN{Value: "1"}, ":v": str("v")}},
		{"DELETE tags :t\tREMOVE a", item{":t": &types.AttributeValueMemberSS{Value: []string{"t"}}}},
		{"SET remove_ = :v, l[0] = :v REMOVE set_", item{":v": str("v")}},
		{"SET n = n + :n REMOVE l[0]", item{":n": &types.AttributeValueMemberN{Value: "1"}}},
	} {
		name := c.update
		key := item{"id": str("form " + name)}
		if _, err := x.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &x.name, Item: item{
			"id": key["id"], "n": &types.AttributeValueMemberN{Value: "1"}, "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{str("l")}},
		}}); err != nil {
			t.Fatal(err)
		}
		in := &dynamodb.UpdateItemInput{TableName: &x.name, Key: key, ExpressionAttributeValues: c.values}
		if i > 0 {
			in.UpdateExpression = &c.update
		}
		if _, err := x.guard().UpdateItem(t.Context(), holding(6), in); err != nil {
			t.Errorf("%q: %v", c.update, err)
		}
		if seen, err := x.guard().Seen(t.Context(), x.name, key); err != nil || seen[order] != 6 {
			t.Errorf("%q: it has seen %v, error %v", c.update, seen, err)
		}
		if _, err := x.guard().UpdateItem(t.Context(), holding(5), in); !isStale(err) {
			t.Errorf("%q: got error %v, want that 5 is stale", c.update, err)
		}
	}
}

func TestInATransactionEveryItemHasItsGuard(t *testing.T) {
	x := newTable(t)
	x.write("a", 5, "paid")
	x.write("b", 7, "paid")
	attempt := func(token fence.Token, condition string) error {
		var items []types.TransactWriteItem
		for _, name := range []string{"a", "b"} {
			in := x.becomes(name, "shipped")
			in.ExpressionAttributeValues[":was"] = str(condition)
			items = append(items, types.TransactWriteItem{Update: &types.Update{
				TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: aws.String("#s = :was"),
				ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
			}})
		}
		_, err := x.guard().TransactWriteItems(t.Context(), holding(token), &dynamodb.TransactWriteItemsInput{TransactItems: items})
		return err
	}
	var stale *fence.StaleError
	if err := attempt(6, "paid"); !errors.As(err, &stale) || stale.Resource != x.name+"/b" || stale.Seen != 7 || !stale.NotApplied {
		t.Errorf("6 is stale for b: got %v", err)
	}
	var canceled *types.TransactionCanceledException
	if err := attempt(7, "new"); !errors.As(err, &canceled) || !errors.Is(err, fence.ErrNotApplied) {
		t.Errorf("the caller's condition fails: got %v", err)
	}
	x.wantState("a", "paid")
	x.wantState("b", "paid")
	if err := attempt(7, "paid"); err != nil {
		t.Error(err)
	}
	x.wantState("a", "shipped")
	x.wantState("b", "shipped")
}

func TestAFenceItemGuardsPlainDeletes(t *testing.T) {
	x := newTable(t)
	put := func(name string) {
		if _, err := x.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &x.name, Item: item{"id": str(name), "state": str("kept")}}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	put("b")
	remove := func(token fence.Token, name string) error {
		_, err := x.guard().TransactFenced(t.Context(), holding(token), x.name, x.key("fence/"+order), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{TableName: &x.name, Key: x.key(name)}}},
		})
		return err
	}
	if err := remove(6, "a"); err != nil {
		t.Fatal(err)
	}
	if i, err := x.get(t.Context(), x.client, "a"); err != nil || i != nil {
		t.Errorf("a is %v, error %v, want nothing", i, err)
	}
	var stale *fence.StaleError
	if err := remove(5, "b"); !errors.As(err, &stale) || !stale.NotApplied || stale.Resource != x.name+"/fence/"+order {
		t.Errorf("got error %v, want that 5 is stale", err)
	}
	x.wantState("b", "kept")
}

// Before, a height was replaced by a token, and a text refused its owner for ever.
func TestAnAttributeOfTheCallersIsNeverTakenForTheGuards(t *testing.T) {
	x := newTable(t)
	for name, mine := range map[string]item{
		"a height":          {"pawl_fence": &types.AttributeValueMemberN{Value: "180"}},
		"a text":            {"pawl_fence": str("wooden")},
		"a lock":            {"pawl_lock": str(order)},
		"a lock and token":  {"pawl_lock": str(order), "pawl_fence": &types.AttributeValueMemberN{Value: "1"}},
		"a large number":    {"pawl_lock": str(order), "pawl_fence": &types.AttributeValueMemberN{Value: "1e40"}, "pawl_write": str("x")},
		"a tombstone":       {"pawl_tombstone": &types.AttributeValueMemberBOOL{Value: true}},
		"an id of no write": {"pawl_write": str("me")},
	} {
		mine["id"] = str(name)
		if _, err := x.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &x.name, Item: mine}); err != nil {
			t.Fatal(err)
		}
		_, update := x.guard().UpdateItem(t.Context(), holding(5), x.becomes(name, "late"))
		_, put := x.guard().PutItem(t.Context(), holding(5), &dynamodb.PutItemInput{TableName: &x.name, Item: item{"id": str(name)}})
		claim := x.guard().Claim(t.Context(), holding(5), x.name, x.key(name))
		_, seen := x.guard().Seen(t.Context(), x.name, x.key(name))
		for what, err := range map[string]error{"update": update, "put": put, "claim": claim, "seen": seen} {
			if !errors.Is(err, fence.ErrInvalid) || !strings.Contains(err.Error(), "choose other names") {
				t.Errorf("%s: %s got error %v", name, what, err)
			}
		}
		now, err := x.get(t.Context(), x.client, name)
		if err != nil || len(now) != len(mine) {
			t.Errorf("%s: it is %v now, error %v", name, now, err)
		}
		other := x.guard()
		other.Attributes = dynamoguard.Attributes{Fence: "a.b", Lock: "size", Write: "#w", Tombstone: "[t]"} // a path, a reserved word, a placeholder
		if _, err := other.UpdateItem(t.Context(), holding(5), x.becomes(name, "right")); err != nil {
			t.Errorf("%s: by other names: %v", name, err)
		}
	}
	for _, name := range []string{"pawl_fence", "pawl_write", "pawl_tombstone"} {
		mine := item{"id": str("put"), name: &types.AttributeValueMemberN{Value: "180"}}
		_, err := x.guard().PutItem(t.Context(), holding(5), &dynamodb.PutItemInput{TableName: &x.name, Item: mine})
		if !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("a put of one's own %s: got error %v", name, err)
		}
	}
	copied, err := x.get(t.Context(), x.client, "a height")
	if err == nil {
		delete(copied, "pawl_fence")
		_, err = x.guard().PutItem(t.Context(), holding(5), &dynamodb.PutItemInput{TableName: &x.name, Item: copied})
	}
	if !errors.Is(err, fence.ErrInvalid) { // there it is still
		t.Errorf("a put over an attribute of the caller's: got error %v", err)
	}
	in := x.becomes("new", "new")
	in.ExpressionAttributeNames["#pawl_lock"] = "mine"
	if _, err := x.guard().UpdateItem(t.Context(), holding(5), in); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("a name of the guard's in the request: got error %v", err)
	}
}

func TestAPutKeepsTheTokensOfLocksThatAreNotHeld(t *testing.T) {
	x := newTable(t)
	const cart = "payments/carts/42"
	g := x.guard()
	g.Locks = []string{order, cart}
	put := func(h fence.Holding, state string) error {
		_, err := g.PutItem(t.Context(), h, &dynamodb.PutItemInput{TableName: &x.name, Item: item{"id": str("a"), "state": str(state)}})
		return err
	}
	for _, h := range []fence.Holding{holding(100), {Lock: cart, Token: 5}, holding(101)} {
		if err := put(h, h.Lock); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range []fence.Holding{holding(100), {Lock: cart, Token: 4}} {
		if err := put(h, "late"); !isStale(err) {
			t.Errorf("%v: got error %v, want that it is stale", h, err)
		}
	}
	x.wantState("a", order)
}

func TestAnItemFromBeforeTheGuardIsTakenOver(t *testing.T) {
	x := newTable(t)
	for _, name := range []string{"claimed", "written"} {
		if _, err := x.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &x.name, Item: item{"id": str(name), "state": str("old")}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.guard().Claim(t.Context(), holding(5), x.name, x.key("claimed")); err != nil {
		t.Fatal(err)
	}
	x.wantState("claimed", "old")
	x.write("written", 5, "new")
	for _, name := range []string{"claimed", "written"} {
		if _, err := x.guard().UpdateItem(t.Context(), holding(4), x.becomes(name, "late")); !isStale(err) {
			t.Errorf("%s: got error %v, want that 4 is stale", name, err)
		}
	}
}

func TestATombstoneIsNoItemToConditionsAndFilters(t *testing.T) {
	x := newTable(t)
	x.write("kept", 5, "paid")
	x.write("deleted", 5, "paid")
	g := x.guard()
	out, err := g.DeleteItem(t.Context(), holding(5), &dynamodb.DeleteItemInput{TableName: &x.name, Key: x.key("deleted"), ReturnValues: types.ReturnValueAllOld})
	if err != nil || out.Attributes["state"].(*types.AttributeValueMemberS).Value != "paid" {
		t.Fatalf("got %v, error %v, want what was deleted", out, err)
	}
	if err := g.Claim(t.Context(), holding(5), x.name, x.key("claimed")); err != nil {
		t.Fatal(err)
	}
	e, err := expression.NewBuilder().WithFilter(g.Attributes.IsTombstone().Not()).Build()
	if err != nil {
		t.Fatal(err)
	}
	all, err := x.client.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: &x.name, FilterExpression: e.Filter(), ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
	})
	if err != nil || len(all.Items) != 1 || all.Items[0]["id"].(*types.AttributeValueMemberS).Value != "kept" {
		t.Errorf("the filter leaves %v, error %v, want what was kept", all, err)
	}
	for name, want := range map[string]bool{"kept": false, "deleted": true, "claimed": true, "never there": true} {
		once := x.becomes(name, "created")
		once.ConditionExpression = aws.String("attribute_not_exists(id) OR attribute_exists(pawl_tombstone)")
		_, err := g.UpdateItem(t.Context(), holding(5), once)
		if want && err != nil || !want && !isOwn(err) {
			t.Errorf("create %s: got error %v", name, err)
		}
		if _, again := g.UpdateItem(t.Context(), holding(5), once); !isOwn(again) {
			t.Errorf("create %s again: got error %v", name, again)
		}
	}
}

func TestACopyOfWhatWasReadMayBePut(t *testing.T) {
	x := newTable(t)
	g := x.guard()
	x.write("kept", 5, "paid")
	x.write("deleted", 5, "paid")
	if _, err := g.DeleteItem(t.Context(), holding(5), &dynamodb.DeleteItemInput{TableName: &x.name, Key: x.key("deleted")}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kept", "deleted"} {
		copied, err := x.get(t.Context(), x.client, name)
		if err != nil {
			t.Fatal(err)
		}
		copied["state"] = str("copied")
		for token, want := range map[fence.Token]func(error) bool{6: func(err error) bool { return err == nil }, 4: isStale} {
			if _, err := g.PutItem(t.Context(), holding(token), &dynamodb.PutItemInput{TableName: &x.name, Item: copied}); !want(err) {
				t.Errorf("%s by %d: got error %v", name, token, err)
			}
		}
		x.wantState(name, "copied")
	}
}
