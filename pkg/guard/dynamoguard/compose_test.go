package dynamoguard_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
)

var state = expression.Name("state")

func is(s string) expression.ConditionBuilder { return state.Equal(expression.Value(s)) }

func becomes(s string) expression.UpdateBuilder { return expression.Set(state, expression.Value(s)) }

const order = "payments/orders/42"

func holder(t fence.Token) dynamoguard.Guard { return dynamoguard.Guard{Lock: order, Token: t} }

// write writes a new state with the token, whatever the state is.
func (x table) write(name string, token fence.Token, s string) {
	x.Helper()
	g := holder(token)
	if err := x.update(x.Context(), x.client, name, g, g.Condition(), g.Stamp(becomes(s))); err != nil {
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
		x.Errorf("the state is %q, want %q", got, want)
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
		condition func(guard expression.ConditionBuilder) expression.ConditionBuilder
		want      func(error) bool
	}{
		"both hold":                 {5, func(g expression.ConditionBuilder) expression.ConditionBuilder { return g.And(is("paid")) }, nil},
		"both hold, the other way":  {5, func(g expression.ConditionBuilder) expression.ConditionBuilder { return is("paid").And(g) }, nil},
		"only the guard":            {5, func(g expression.ConditionBuilder) expression.ConditionBuilder { return g.And(is("new")) }, isOwn},
		"only the guard, other way": {5, func(g expression.ConditionBuilder) expression.ConditionBuilder { return is("new").And(g) }, isOwn},
		"only the caller's":         {4, func(g expression.ConditionBuilder) expression.ConditionBuilder { return g.And(is("paid")) }, isStale},
		"neither":                   {4, func(g expression.ConditionBuilder) expression.ConditionBuilder { return g.And(is("new")) }, isStale},
		"an alternative of the caller": {4, func(g expression.ConditionBuilder) expression.ConditionBuilder {
			return g.And(is("new").Or(is("paid")))
		}, isStale},
		"an alternative, other way": {4, func(g expression.ConditionBuilder) expression.ConditionBuilder {
			return is("new").Or(is("paid")).And(g)
		}, isStale},
		"a negation": {4, func(g expression.ConditionBuilder) expression.ConditionBuilder { return is("new").Not().And(g) }, isStale},
	} {
		x.write(name, 5, "paid")
		g := holder(c.token)
		err := x.update(t.Context(), x.client, name, g, c.condition(g.Condition()), g.Stamp(becomes("shipped")))
		if c.want == nil && err != nil || c.want != nil && !c.want(err) {
			t.Errorf("%s: got error %v", name, err)
		}
		if c.want == nil {
			x.wantState(name, "shipped")
		} else {
			x.wantState(name, "paid")
		}
	}
}

func TestInATransactionEveryItemHasItsGuard(t *testing.T) {
	x := newTable(t)
	x.write("a", 5, "paid")
	x.write("b", 7, "paid")
	ship := func(name string, token fence.Token, own expression.ConditionBuilder) (dynamoguard.Guard, types.TransactWriteItem) {
		g := holder(token)
		e, err := expression.NewBuilder().WithCondition(g.Condition().And(own)).WithUpdate(g.Stamp(becomes("shipped"))).Build()
		if err != nil {
			t.Fatal(err)
		}
		return g, types.TransactWriteItem{Update: &types.Update{
			TableName: &x.name, Key: item{"id": str(name)}, UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
			ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	attempt := func(tokenA, tokenB fence.Token, own expression.ConditionBuilder) (first, second, beyond error) {
		ga, a := ship("a", tokenA, is("paid"))
		gb, b := ship("b", tokenB, own)
		_, err := x.client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{a, b}})
		return ga.RefusedAt(t.Context(), 0, err), gb.RefusedAt(t.Context(), 1, err), gb.RefusedAt(t.Context(), 2, err)
	}
	canceled := func(err error) bool {
		var c *types.TransactionCanceledException
		return errors.As(err, &c)
	}

	if a, b, c := attempt(5, 6, is("paid")); !canceled(a) || !isStale(b) || !canceled(c) {
		t.Errorf("b is stale: got\n%v\n%v\n%v", a, b, c)
	}
	if a, b, _ := attempt(4, 6, is("paid")); !isStale(a) || !isStale(b) {
		t.Errorf("both are stale: got\n%v\n%v", a, b)
	}
	if a, b, _ := attempt(5, 7, is("new")); !canceled(a) || !canceled(b) {
		t.Errorf("the caller's condition fails: got\n%v\n%v", a, b)
	}
	x.wantState("a", "paid")
	x.wantState("b", "paid")
	if a, b, c := attempt(5, 7, is("paid")); a != nil || b != nil || c != nil {
		t.Errorf("all is well: got\n%v\n%v\n%v", a, b, c)
	}
	x.wantState("a", "shipped")
	x.wantState("b", "shipped")
}

func TestAHolderOfSeveralLocksHasEachTokenCompared(t *testing.T) {
	x := newTable(t)
	const cart = "payments/carts/42"
	write := func(tokenOrder, tokenCart fence.Token, s string) error {
		g := dynamoguard.Guard{Lock: order, Token: tokenOrder, With: map[string]fence.Token{cart: tokenCart}}
		return x.update(t.Context(), x.client, "a", g, g.Condition(), g.Stamp(becomes(s)))
	}
	if err := write(100, 5, "first"); err != nil {
		t.Fatal(err)
	}
	var stale *fence.StaleError
	if err := write(100, 4, "late"); !errors.As(err, &stale) || stale.Lock != cart || stale.Token != 4 || stale.Seen != 5 {
		t.Errorf("got error %v, want that 4 of %s is stale", err, cart)
	}
	if err := write(99, 6, "late"); !errors.As(err, &stale) || stale.Lock != order || stale.Token != 99 || stale.Seen != 100 {
		t.Errorf("got error %v, want that 99 of %s is stale", err, order)
	}
	// One of the two may be held alone, if both are declared.
	alone := dynamoguard.Guard{Lock: cart, Token: 7, Locks: []string{cart, order, cart}}
	if err := x.update(t.Context(), x.client, "a", alone, alone.Condition(), alone.Stamp(becomes("alone"))); err != nil {
		t.Error(err)
	}
	if err := write(100, 6, "late"); !isStale(err) {
		t.Errorf("got error %v, want that 6 is stale", err)
	}
	alone.Locks = nil
	err := x.update(t.Context(), x.client, "a", alone, alone.Condition(), alone.Stamp(becomes("undeclared")))
	var other *fence.OtherLockError
	if !errors.As(err, &other) || other.Bound != cart+", "+order {
		t.Errorf("got error %v, want that both locks must be declared", err)
	}
	x.wantState("a", "alone")
	// A put replaces the item, so it needs both tokens.
	both := dynamoguard.Guard{Lock: order, Token: 101, With: map[string]fence.Token{cart: 8}}
	content := item{"id": str("a"), "state": str("put")}
	if err := both.StampItem(content); err != nil {
		t.Fatal(err)
	}
	if err := x.put(t.Context(), x.client, both, both.Condition(), content); err != nil {
		t.Error(err)
	}
	if err := write(101, 7, "late"); !isStale(err) {
		t.Errorf("got error %v, want that 7 is stale after the put", err)
	}
	x.wantState("a", "put")
}

func TestAnItemFromBeforeTheGuardIsTakenOver(t *testing.T) {
	x := newTable(t)
	for _, name := range []string{"claimed", "written"} {
		if _, err := x.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &x.name, Item: item{"id": str(name), "state": str("old")}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := holder(5).Claim(t.Context(), x.client, x.name, item{"id": str("claimed")}); err != nil {
		t.Fatal(err)
	}
	x.wantState("claimed", "old")
	x.write("written", 5, "new")
	for _, name := range []string{"claimed", "written"} {
		late := holder(4)
		if err := x.update(t.Context(), x.client, name, late, late.Condition(), late.Stamp(becomes("late"))); !isStale(err) {
			t.Errorf("%s: got error %v, want that 4 is stale", name, err)
		}
	}
}

func TestATombstoneIsNoItemToConditionsAndFilters(t *testing.T) {
	x := newTable(t)
	x.write("kept", 5, "paid")
	x.write("deleted", 5, "paid")
	g := holder(5)
	if err := x.update(t.Context(), x.client, "deleted", g, g.Condition(), g.Tombstone(expression.Remove(state))); err != nil {
		t.Fatal(err)
	}
	if err := g.Claim(t.Context(), x.client, x.name, item{"id": str("claimed")}); err != nil {
		t.Fatal(err)
	}
	again, err := x.get(t.Context(), x.client, "deleted")
	if err != nil || !g.Attributes.Absent(again) {
		t.Errorf("read %v, error %v, want a tombstone", again, err)
	}
	if err := g.StampItem(again); err != nil || g.Attributes.Absent(again) {
		t.Errorf("stamped as %v, error %v, want no tombstone any more", again, err)
	}
	e, err := expression.NewBuilder().WithFilter(g.Attributes.IsTombstone().Not()).Build()
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.client.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: &x.name, FilterExpression: e.Filter(), ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
	})
	if err != nil || len(out.Items) != 1 || out.Items[0]["id"].(*types.AttributeValueMemberS).Value != "kept" {
		t.Errorf("the filter leaves %v, error %v, want what was kept", out, err)
	}
	once := id.AttributeNotExists().Or(g.Attributes.IsTombstone())
	for name, want := range map[string]bool{"kept": false, "deleted": true, "claimed": true, "never there": true} {
		err := x.update(t.Context(), x.client, name, g, g.Condition().And(once), g.Stamp(becomes("created")))
		if want && err != nil || !want && !isOwn(err) {
			t.Errorf("create %s: got error %v", name, err)
		}
		again := x.update(t.Context(), x.client, name, g, g.Condition().And(once), g.Stamp(becomes("created twice")))
		if !isOwn(again) {
			t.Errorf("create %s again: got error %v", name, again)
		}
	}
}

func TestTheExampleShips(t *testing.T) {
	x := newTable(t)
	x.write("42", 5, "paid")
	if err := ship(t.Context(), x.client, x.name, 4); !isStale(err) {
		t.Errorf("got error %v, want that it is stale", err)
	}
	x.wantState("42", "paid")
	if err := ship(t.Context(), x.client, x.name, 6); err != nil {
		t.Error(err)
	}
	x.wantState("42", "shipped")
	if err := ship(t.Context(), x.client, x.name, 6); !isOwn(err) {
		t.Errorf("got error %v, want that it is not paid any more", err)
	}
	if err := ship(t.Context(), x.client, x.name, 0); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
}
