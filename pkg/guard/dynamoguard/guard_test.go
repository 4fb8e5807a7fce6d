package dynamoguard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
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

func TestAnInvalidHoldingSendsAndBuildsNothing(t *testing.T) {
	g := &dynamoguard.Guard{Locks: []string{"a/b", "a/c"}} // no client: what is sent, panics
	for name, c := range map[string]struct {
		h    fence.Holding
		want error
	}{
		"no token":                    {fence.Holding{Lock: "a/b"}, fence.ErrInvalid},
		"no lock":                     {fence.Holding{Token: 1}, fence.ErrInvalid},
		"a name that is none":         {fence.Holding{Lock: "a/\xff", Token: 1}, fence.ErrInvalid},
		"a lock that is not declared": {fence.Holding{Lock: "a/d", Token: 1}, fence.ErrOtherLock},
	} {
		_, update := g.UpdateItem(t.Context(), c.h, new(dynamodb.UpdateItemInput))
		_, put := g.PutItem(t.Context(), c.h, new(dynamodb.PutItemInput))
		_, transact := g.TransactWriteItems(t.Context(), c.h, new(dynamodb.TransactWriteItemsInput))
		reset := g.Reset(t.Context(), c.h, "orders", nil)
		for _, err := range []error{update, put, transact, reset} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: got error %v, want %v", name, err, c.want)
			}
		}
		for part, b := range map[string]expression.Builder{
			"condition": expression.NewBuilder().WithCondition(g.Condition(c.h)),
			"stamp":     expression.NewBuilder().WithUpdate(g.Stamp(c.h, expression.UpdateBuilder{})),
			"tombstone": expression.NewBuilder().WithUpdate(g.Tombstone(c.h, expression.UpdateBuilder{})),
		} {
			_, err := b.Build()
			if err == nil || !errors.Is(g.Refused(t.Context(), c.h, "row", err), c.want) || !errors.Is(g.RefusedAt(t.Context(), c.h, "row", 0, err), c.want) {
				t.Errorf("%s: the %s was built with error %v, want %v", name, part, err, c.want)
			}
		}
	}
}

func TestARefusalNamesTheItemAndIsObservedOnce(t *testing.T) {
	x := newTable(t)
	x.write("a", 5, "paid")
	var observed []error
	g := x.guard()
	g.Observer = func(_ context.Context, err error) { observed = append(observed, err) }
	_, err := g.UpdateItem(t.Context(), holding(4), x.becomes("a", "shipped"))
	var stale *fence.StaleError
	if !errors.As(err, &stale) || stale.Resource != x.name+"/a" || stale.Seen != 5 || stale.NotApplied {
		t.Errorf("got error %v, want that 4 is stale for %s/a", err, x.name)
	}
	_, err = g.UpdateItem(t.Context(), fence.Holding{Lock: "payments/carts/42", Token: 9}, x.becomes("a", "shipped"))
	var other *fence.OtherLockError
	if !errors.As(err, &other) || other.Bound != order {
		t.Errorf("got error %v, want that it is bound to %s", err, order)
	}
	for i := range 4 { // as whoever looks for the item that was refused
		_ = g.RefusedAt(t.Context(), holding(4), "a", i, stale)
	}
	if len(observed) != 2 || observed[0] != error(stale) || observed[1] != error(other) {
		t.Errorf("observed %v", observed)
	}
}

func TestWithoutTheOldItemARefusalIsStillNoSuccess(t *testing.T) {
	x := newTable(t)
	x.write("a", 5, "paid")
	g, h := x.guard(), holding(4)
	e, err := expression.NewBuilder().WithCondition(g.Condition(h)).WithUpdate(g.Stamp(h, expression.UpdateBuilder{})).Build()
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &x.name, Key: x.key("a"), UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
	})
	if err := g.Refused(t.Context(), h, "a", err); !isOwn(err) {
		t.Errorf("got error %v, want the condition that failed", err)
	}
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
		_, err := x.guard().UpdateItem(t.Context(), holding(token), x.becomes("a", s))
		return err
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
		if err := write(5, "after"); err == nil || fence.Refused(err) || errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("%s: got error %v", name, err)
		}
		x.wantState("a", c.state)
		if err := write(5, "again"); err != nil { // the same token may repeat it
			t.Errorf("%s: repeat: %v", name, err)
		}
	}
}

// The SDK sends again by itself. What adds up must not do so twice.
func TestAWriteThatTheSDKSendsAgainIsMadeOnce(t *testing.T) {
	x := newTable(t)
	add := func(name string, values types.ReturnValue, between func()) (*dynamodb.UpdateItemOutput, error) {
		g := x.guard()
		g.Client = hooked(x.client, func(send func() (*http.Response, error)) (*http.Response, error) {
			a, err := send()
			if err == nil {
				_ = a.Body.Close()
			}
			between()
			return nil, io.ErrUnexpectedEOF
		})
		return g.UpdateItem(t.Context(), holding(5), &dynamodb.UpdateItemInput{
			TableName: &x.name, Key: x.key(name), UpdateExpression: aws.String("ADD n :one"), ReturnValues: values,
			ExpressionAttributeValues: item{":one": &types.AttributeValueMemberN{Value: "1"}},
		})
	}
	count := func(name, want string) {
		t.Helper()
		if i, err := x.get(t.Context(), x.client, name); err != nil || i["n"].(*types.AttributeValueMemberN).Value != want {
			t.Errorf("%s: counted %v, error %v, want %s", name, i["n"], err, want)
		}
	}
	nothing := func() {}
	if _, err := add("a", "", nothing); err != nil {
		t.Error(err)
	}
	count("a", "1")
	if out, err := add("a", types.ReturnValueAllNew, nothing); err != nil || out.Attributes["n"].(*types.AttributeValueMemberN).Value != "2" {
		t.Errorf("got %v, error %v, want all that is new", out, err)
	}
	if _, err := add("a", types.ReturnValueUpdatedOld, nothing); !errors.Is(err, dynamoguard.ErrAnswerLost) {
		t.Errorf("got error %v, want ErrAnswerLost", err)
	}
	count("a", "3")
	_, err := add("b", "", func() { x.write("b", 6, "six") })
	var stale *fence.StaleError
	if !errors.As(err, &stale) || stale.NotApplied {
		t.Errorf("got error %v, want that 5 is stale and may have been applied", err)
	}
	count("b", "1")
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
		return x.guard().Claim(t.Context(), holding(token), x.name, x.key("a"))
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
	if err := x.guard().Claim(t.Context(), holding(6), x.name, nil); !errors.Is(err, fence.ErrNotApplied) {
		t.Errorf("claimed without a key: %v", err)
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
		err := slow.guard().Claim(t.Context(), holding(5), x.name, x.key(name))
		if want && err != nil || !want && !isStale(err) {
			t.Errorf("%s: got error %v", name, err)
		}
		x.wantState(name, "paid")
	}
}

func TestNoErrorOfSomebodyElseIsARefusal(t *testing.T) {
	g, h := new(dynamoguard.Guard), holding(5)
	if err := errors.Join(g.Refused(t.Context(), h, "a", nil), g.RefusedAt(t.Context(), h, "a", 0, nil)); err != nil {
		t.Errorf("nil became %v", err)
	}
	for _, err := range []error{
		context.Canceled,
		&types.ConditionalCheckFailedException{},
		&types.ConditionalCheckFailedException{Item: item{"id": str("a")}},
		&types.TransactionCanceledException{},
		&types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{}}},
		&types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{
			Code: aws.String("TransactionConflict"), Item: item{"pawl_fence": &types.AttributeValueMemberN{Value: "9"}},
		}}},
	} {
		if got := g.Refused(t.Context(), h, "a", err); got != err {
			t.Errorf("%v became %v", err, got)
		}
		if got := g.RefusedAt(t.Context(), h, "a", 0, err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
