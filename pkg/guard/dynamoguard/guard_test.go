package dynamoguard_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
	"github.com/pawl-lock/pawl/pkg/guard/guardtest"
)

func TestAnInvalidGuardBuildsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		g    dynamoguard.Guard
		want error
	}{
		"no token":                     {dynamoguard.Guard{Lock: "a/b"}, fence.ErrInvalid},
		"no lock":                      {dynamoguard.Guard{Token: 1}, fence.ErrInvalid},
		"too large a token":            {dynamoguard.Guard{Lock: "a/b", Token: fence.Max + 1}, fence.ErrInvalid},
		"a second lock without token":  {dynamoguard.Guard{Lock: "a/b", Token: 1, With: map[string]fence.Token{"a/c": 0}}, fence.ErrInvalid},
		"a second lock without name":   {dynamoguard.Guard{Lock: "a/b", Token: 1, With: map[string]fence.Token{"": 1}}, fence.ErrInvalid},
		"two tokens of a lock":         {dynamoguard.Guard{Lock: "a/b", Token: 1, With: map[string]fence.Token{"a/b": 2}}, fence.ErrInvalid},
		"a declared lock without name": {dynamoguard.Guard{Lock: "a/b", Token: 1, Locks: []string{"a/b", ""}}, fence.ErrInvalid},
		"a lock that is not declared":  {dynamoguard.Guard{Lock: "a/b", Token: 1, Locks: []string{"a/c"}}, fence.ErrOtherLock},
		"another that is not declared": {dynamoguard.Guard{Lock: "a/b", Token: 1, With: map[string]fence.Token{"a/c": 1}, Locks: []string{"a/b"}}, fence.ErrOtherLock},
	} {
		if err := c.g.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
		}
		for part, b := range map[string]expression.Builder{
			"condition": expression.NewBuilder().WithCondition(c.g.Condition()),
			"stamp":     expression.NewBuilder().WithUpdate(c.g.Stamp(expression.UpdateBuilder{})),
			"tombstone": expression.NewBuilder().WithUpdate(c.g.Tombstone(expression.UpdateBuilder{})),
		} {
			_, err := b.Build()
			if err == nil || !errors.Is(c.g.Refused(t.Context(), err), c.want) || !errors.Is(c.g.RefusedAt(t.Context(), 0, err), c.want) {
				t.Errorf("%s: the %s was built with error %v, want %v", name, part, err, c.want)
			}
		}
		content := item{"id": str("a")}
		if err := errors.Join(c.g.StampItem(content), c.g.TombstoneItem(content)); !errors.Is(err, c.want) || len(content) != 1 {
			t.Errorf("%s: stamped as %v with error %v, want %v", name, content, err, c.want)
		}
	}
	content := item{"id": str("a")}
	partly := dynamoguard.Guard{Lock: "a/b", Token: 1, Locks: []string{"a/b", "a/c"}}
	if err := errors.Join(partly.StampItem(content), partly.TombstoneItem(content)); !errors.Is(err, fence.ErrInvalid) || len(content) != 1 {
		t.Errorf("a put that forgets a token: stamped as %v with error %v", content, err)
	}
}

func TestTheAttributesMayHaveOtherNames(t *testing.T) {
	x := newTable(t)
	g := holder(5)
	g.Attributes = dynamoguard.Attributes{Fence: "a.b", Lock: "size", Tombstone: "#t"} // a path, a reserved word, a placeholder
	key := item{"id": str("a")}
	if err := g.Claim(t.Context(), x.client, x.name, key); err != nil {
		t.Fatal(err)
	}
	i, err := x.get(t.Context(), x.client, "a")
	if got := slices.Sorted(maps.Keys(i)); err != nil || !slices.Equal(got, []string{"#t", "a.b", "id", "size"}) {
		t.Errorf("the item has %q, error %v", got, err)
	}
	if !g.Attributes.Absent(i) || g.Attributes.Absent(key) {
		t.Error("a tombstone and an item are taken for each other")
	}
	g.Token = 4
	if err := g.Claim(t.Context(), x.client, x.name, key); !isStale(err) {
		t.Errorf("got error %v, want that it is stale", err)
	}
}

func TestARefusalNamesTheResourceAndIsObserved(t *testing.T) {
	x := newTable(t)
	x.write("a", 5, "paid")
	var observed []error
	g := dynamoguard.Guard{Lock: order, Token: 4, Resource: "orders/42", OnRefusal: func(_ context.Context, err error) { observed = append(observed, err) }}
	err := x.update(t.Context(), x.client, "a", g, g.Condition(), g.Stamp(becomes("shipped")))
	var stale *fence.StaleError
	if want := (fence.StaleError{Lock: order, Token: 4, Seen: 5, Resource: "orders/42"}); !errors.As(err, &stale) || *stale != want {
		t.Errorf("got error %v, want %+v", err, want)
	}
	g.Lock = "payments/carts/42"
	err = x.update(t.Context(), x.client, "a", g, g.Condition(), g.Stamp(becomes("shipped")))
	var other *fence.OtherLockError
	if want := (fence.OtherLockError{Lock: g.Lock, Bound: order, Resource: "orders/42"}); !errors.As(err, &other) || *other != want {
		t.Errorf("got error %v, want %+v", err, want)
	}
	if len(observed) != 2 || observed[0] != error(stale) || observed[1] != error(other) {
		t.Errorf("observed %v", observed)
	}
}

func TestWithoutTheOldItemARefusalIsStillNoSuccess(t *testing.T) {
	x := newTable(t)
	x.write("a", 5, "paid")
	g := holder(4)
	e, err := expression.NewBuilder().WithCondition(g.Condition()).WithUpdate(g.Stamp(becomes("shipped"))).Build()
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &x.name, Key: item{"id": str("a")}, UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
	})
	if err := g.Refused(t.Context(), err); !isOwn(err) {
		t.Errorf("got error %v, want the condition that failed", err)
	}
	x.wantState("a", "paid")
}

// through returns the table as seen through a proxy, by a client that tries once.
func (x table) through() (table, *faultproxy.Proxy) {
	o := localtest.DynamoDBForTest(x).Options()
	p := faultproxy.Start(x, *o.BaseEndpoint)
	o.BaseEndpoint, o.Retryer = aws.String(p.URL), aws.NopRetryer{}
	x.client = dynamodb.New(o)
	return x, p
}

func TestAnAnswerThatIsLostIsNeitherSuccessNorRefusal(t *testing.T) {
	x, p := newTable(t).through()
	write := func(token fence.Token, s string) error {
		g := holder(token)
		return x.update(t.Context(), x.client, "a", g, g.Condition(), g.Stamp(becomes(s)))
	}
	for name, c := range map[string]struct {
		fault faultproxy.Fault
		state string
	}{
		"the request is lost":   {faultproxy.Drop, "before"},
		"the answer is lost":    {faultproxy.After(faultproxy.Drop), "after"},
		"the answer is cut":     {faultproxy.Truncate, "after"},
		"an internal error":     {faultproxy.Refuse(500, "InternalServerError"), "before"},
		"an error after it all": {faultproxy.After(faultproxy.Refuse(500, "InternalServerError")), "after"},
	} {
		if err := write(5, "before"); err != nil {
			t.Fatal(err)
		}
		p.Next("UpdateItem", c.fault)
		if err := write(5, "after"); err == nil || errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrOtherLock) || errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%s: got error %v", name, err)
		}
		x.wantState("a", c.state)
		if err := write(5, "again"); err != nil { // the same token may repeat it
			t.Errorf("%s: repeat: %v", name, err)
		}
	}
}

func TestTheGuardStandsTheHammerOnABadNetwork(t *testing.T) {
	t.Setenv("GUARD_SECONDS", "2")
	x, p := newTable(t).through()
	p.Every("UpdateItem", faultproxy.Random(1,
		faultproxy.Chance{Of: .1, Fault: faultproxy.Drop},
		faultproxy.Chance{Of: .1, Fault: faultproxy.After(faultproxy.Drop)}))
	guardtest.Hammer(t, func(t *testing.T) guardtest.Store { return store{x, byUpdate} })
}

func TestAClaimTakesOneRequestAndTwoWhereNothingIs(t *testing.T) {
	x, p := newTable(t).through()
	claim := func(token fence.Token) error {
		return holder(token).Claim(t.Context(), x.client, x.name, item{"id": str("a")})
	}
	for i, want := range []int{2, 1, 1} {
		before := len(p.Seen("UpdateItem"))
		if err := claim(fence.Token(5 + i)); err != nil {
			t.Fatal(err)
		}
		if got := len(p.Seen("UpdateItem")) - before; got != want {
			t.Errorf("claim %d took %d requests, want %d", i, got, want)
		}
	}
	if err := claim(6); !isStale(err) {
		t.Errorf("got error %v, want that it is stale", err)
	}
	if err := holder(6).Claim(t.Context(), x.client, x.name, nil); err == nil {
		t.Error("claimed without a key")
	}
}

func TestAClaimLeavesWhatIsCreatedMeanwhile(t *testing.T) {
	x := newTable(t)
	slow, p := x.through()
	for token, want := range map[fence.Token]bool{4: true, 5: true, 6: false} {
		name := "written with " + token.String()
		p.Next("UpdateItem", faultproxy.Pass, func(e *faultproxy.Exchange) {
			x.write(name, token, "paid")
			faultproxy.Pass(e)
		})
		err := holder(5).Claim(t.Context(), slow.client, x.name, item{"id": str(name)})
		if want && err != nil || !want && !isStale(err) {
			t.Errorf("%s: got error %v", name, err)
		}
		x.wantState(name, "paid")
	}
}

func TestNoErrorOfSomebodyElseIsARefusal(t *testing.T) {
	g := holder(5)
	if err := errors.Join(g.Refused(t.Context(), nil), g.RefusedAt(t.Context(), 0, nil)); err != nil {
		t.Errorf("nil became %v", err)
	}
	for _, err := range []error{
		context.Canceled,
		&types.ConditionalCheckFailedException{},
		&types.ConditionalCheckFailedException{Item: item{"id": str("a"), "fence": str("9"), "fence_lock": &types.AttributeValueMemberBOOL{}}},
		&types.ConditionalCheckFailedException{Item: item{"fence": &types.AttributeValueMemberN{Value: "1e40"}}},
		&types.TransactionCanceledException{},
		&types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{}}},
		&types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{
			Code: aws.String("TransactionConflict"), Item: item{"fence": &types.AttributeValueMemberN{Value: "9"}},
		}}},
	} {
		if got := g.Refused(t.Context(), err); got != err {
			t.Errorf("%v became %v", err, got)
		}
		if got := g.RefusedAt(t.Context(), 0, err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
