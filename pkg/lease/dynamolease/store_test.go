package dynamolease_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

func TestDynamoDBKeepsThePromises(t *testing.T) {
	x := newTable(t)
	leasetest.Run(t, func(*testing.T) lease.Service { return x.store(nil, protocol.Rules{}) })
}

// calls makes every call that can change something, with a call of its own.
func calls(ctx context.Context, s *dynamolease.Store, l lease.Lease) map[string]func(*lease.Call) error {
	with := func(call *lease.Call) context.Context { return lease.WithCall(ctx, call) }
	return map[string]func(*lease.Call) error{
		"acquire": func(c *lease.Call) error {
			_, err := s.Acquire(with(c), lease.AcquireRequest{Name: l.Name, TTL: time.Minute})
			return err
		},
		"renew": func(c *lease.Call) error {
			_, err := s.Renew(with(c), lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: time.Hour})
			return err
		},
		"break": func(c *lease.Call) error {
			_, err := s.Break(with(c), lease.BreakRequest{Name: l.Name, Token: l.Token, Reason: "test"})
			return err
		},
		"release": func(c *lease.Call) error {
			_, err := s.Release(with(c), lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token})
			return err
		},
	}
}

var anyLease = lease.Lease{Name: lease.Name{Namespace: "a", Lock: "b"}, ID: lease.NewID(), Token: 7}

func TestAnItemOfSomethingElseIsNeitherGrantedNorChanged(t *testing.T) {
	x := newTable(t)
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	s := x.store(nil, protocol.Rules{})
	for name, tok := range map[string]types.AttributeValue{
		"a token that is a string":  text("7"),
		"token zero":                number("0"),
		"a negative token":          number("-7"),
		"the largest token":         number(fence.Max.String()),
		"a token that is too large": number("1000000000000000"),
	} {
		for when, acq := range map[string]string{"before now": "1", "after now": "9999999999999"} {
			l := anyLease
			l.Name.Lock = name + " " + when
			x.put(l.Name, map[string]types.AttributeValue{"tok": tok, "acq": number(acq), "own": text("worker-1")})
			before := x.item(l.Name)
			if name == "the largest token" { // it is valid, and nothing can come after it
				_, err := s.Acquire(t.Context(), lease.AcquireRequest{Name: l.Name, TTL: time.Minute})
				if !errors.Is(err, lease.ErrMisconfigured) {
					t.Errorf("%s: acquire: got error %v, want ErrMisconfigured", l.Name.Lock, err)
				}
			} else {
				for call, do := range calls(t.Context(), s, l) {
					if err := do(new(lease.Call)); !errors.Is(err, lease.ErrMisconfigured) || errors.Is(err, lease.ErrOutcomeUnknown) {
						t.Errorf("%s: %s: got error %v, want ErrMisconfigured", l.Name.Lock, call, err)
					}
				}
				if _, err := s.Get(t.Context(), l.Name); !errors.Is(err, lease.ErrMisconfigured) {
					t.Errorf("%s: get: got error %v, want ErrMisconfigured", l.Name.Lock, err)
				}
			}
			if after := x.item(l.Name); !reflect.DeepEqual(after, before) {
				t.Errorf("%s: became %v", l.Name.Lock, after)
			}
		}
	}
}

// What the condition cannot see is found in the answer, when it has been written.
func TestAGrantOnTopOfAnItemThatCannotBeReadIsNotToldAsIfNothingWasChanged(t *testing.T) {
	x := newTable(t)
	s := x.store(nil, protocol.Rules{})
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	for name, item := range map[string]map[string]types.AttributeValue{
		"a token with a fraction":     {"tok": number("5.5"), "acq": number("1")},
		"a holder that is a number":   {"tok": number("5"), "acq": number("1"), "own": number("3")},
		"an expiry that is no number": {"tok": number("5"), "acq": number("1"), "exp": &types.AttributeValueMemberS{Value: "3"}},
	} {
		n := lease.Name{Namespace: "a", Lock: name}
		x.put(n, item)
		l, err := s.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute})
		if !errors.Is(err, lease.ErrOutcomeUnknown) || !errors.Is(err, lease.ErrMisconfigured) || l.Token != 0 {
			t.Errorf("%s: got token %d, error %v, want ErrOutcomeUnknown because of ErrMisconfigured", name, l.Token, err)
		}
	}
}

func TestNothingIsGrantedBeyondTheLargestToken(t *testing.T) {
	x := newTable(t)
	number := func(n fence.Token) types.AttributeValue { return &types.AttributeValueMemberN{Value: n.String()} }
	s := x.store(nil, protocol.Rules{})
	for token, want := range map[fence.Token]error{fence.Max - 1: nil, fence.Max: lease.ErrMisconfigured} {
		n := lease.Name{Namespace: "a", Lock: token.String()}
		x.put(n, map[string]types.AttributeValue{"tok": number(token), "acq": number(1)})
		l, err := s.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute})
		if !errors.Is(err, want) || want == nil && l.Token != fence.Max || want != nil && l.Token != 0 {
			t.Errorf("after %d: got token %d, error %v, want %v", token, l.Token, err, want)
		}
	}
}

// Anyone may name the largest token: only an item that has it is strange.
func TestABreakOfTheLargestTokenIsAnsweredFromTheItem(t *testing.T) {
	x := newTable(t)
	s := x.store(nil, protocol.Rules{})
	n := anyLease.Name
	breaks := func() (lease.Broken, error) {
		return s.Break(t.Context(), lease.BreakRequest{Name: n, Token: fence.Max, Reason: "test"})
	}
	if b, err := breaks(); err != nil || !b.AlreadyFree || b.Token != 0 {
		t.Errorf("of a lock of which nothing is recorded: got %v, error %v", b, err)
	}
	l, err := s.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var changed *lease.TokenChangedError
	if _, err := breaks(); !errors.As(err, &changed) || changed.Token != l.Token {
		t.Errorf("of a lock that is held: got error %v, want that its token is %d", err, l.Token)
	}
	n.Lock = "strange"
	x.put(n, map[string]types.AttributeValue{
		"tok": &types.AttributeValueMemberN{Value: fence.Max.String()}, "lid": &types.AttributeValueMemberS{Value: lease.NewID()},
	})
	if b, err := breaks(); !errors.Is(err, lease.ErrMisconfigured) {
		t.Errorf("of an item that has it: got %v, error %v, want ErrMisconfigured", b, err)
	}
}

func TestAMissingTableIsForSomeoneToRepair(t *testing.T) {
	x := newTable(t)
	s := &dynamolease.Store{Client: x.client, Table: x.name + "-missing"}
	for name, do := range calls(t.Context(), s, anyLease) {
		if err := do(new(lease.Call)); !errors.Is(err, lease.ErrMisconfigured) {
			t.Errorf("%s: got error %v, want ErrMisconfigured", name, err)
		}
	}
	if _, err := s.Get(t.Context(), anyLease.Name); !errors.Is(err, lease.ErrMisconfigured) {
		t.Errorf("get: got error %v, want ErrMisconfigured", err)
	}
}

func TestAStoreThatIsNotSetUpRefusesEveryCall(t *testing.T) {
	client, now := dynamolease.NewClientFrom(nobody(t)), time.Now()
	for field, s := range map[string]*dynamolease.Store{
		"Client":        {Table: "any"},
		"Table":         {Client: client},
		"MaxTTL":        {Client: client, Table: "any", Rules: protocol.Rules{MaxTTL: 48 * time.Hour}},
		"Skew":          {Client: client, Table: "any", Rules: protocol.Rules{Skew: -1}},
		"QuarantineEnd": {Client: client, Table: "any", Rules: protocol.Rules{RestoredAt: now}},
		"RestoredAt": {Client: client, Table: "any", Rules: protocol.Rules{
			RestoredAt: now.Add(time.Hour), QuarantineEnd: now.Add(2 * time.Hour),
		}},
	} {
		do := calls(t.Context(), s, anyLease)
		do["get"] = func(*lease.Call) error { _, err := s.Get(t.Context(), anyLease.Name); return err }
		for call, do := range do {
			if err := do(new(lease.Call)); !errors.Is(err, lease.ErrMisconfigured) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %s: got error %v, want ErrMisconfigured because of it", field, call, err)
			}
		}
	}
}

func TestWithoutCredentialsNothingIsSent(t *testing.T) {
	s := &dynamolease.Store{Table: "any", Client: dynamolease.NewClientFrom(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(closedPort(t)),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no credentials")
		}),
	})}
	for name, do := range calls(t.Context(), s, anyLease) {
		c := new(lease.Call)
		if err := do(c); !errors.Is(err, lease.ErrMisconfigured) || c.Requests != 0 {
			t.Errorf("%s: got error %v after %d requests, want ErrMisconfigured after none", name, err, c.Requests)
		}
	}
}

func TestAStoreThatCannotBeReachedIsUnavailable(t *testing.T) {
	s := &dynamolease.Store{Table: "any", Client: dynamolease.NewClientFrom(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(closedPort(t)),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pawl", SecretAccessKey: "pawl"}, nil
		}),
	})}
	for name, do := range calls(t.Context(), s, anyLease) {
		err := do(new(lease.Call))
		var retry *lease.RetryError
		if !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrOutcomeUnknown) || !errors.As(err, &retry) || retry.After <= 0 {
			t.Errorf("%s: got error %v, want ErrUnavailable, to be tried again", name, err)
		}
	}
}

// closedPort returns a URL at which nobody answers.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String()
}

func TestCreateTableLeavesATableThatExistsAsItIs(t *testing.T) {
	x := newTable(t)
	s := x.store(nil, protocol.Rules{})
	l, err := s.Acquire(t.Context(), lease.AcquireRequest{Name: anyLease.Name, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamolease.CreateTable(t.Context(), x.client, x.name); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if got, err := s.Get(t.Context(), l.Name); err != nil || !got.Held {
		t.Errorf("got %v, error %v, want it held still", got, err)
	}
	if err := dynamolease.CreateTable(t.Context(), x.client, "no/name"); err == nil {
		t.Error("a table without a valid name was made")
	}
}

// The host is too slow or too fast for the gateway, or was frozen.
func TestADoubtfulClockSendsNothingExceptToGiveUp(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	l, err := s.Acquire(t.Context(), lease.AcquireRequest{Name: anyLease.Name, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for name, received := range map[string]protocol.Instant{"behind": now + second + ms, "frozen": now - 30*second - ms} {
		x.sent.take()
		for call, do := range calls(t.Context(), s, l) {
			if call == "release" {
				continue
			}
			c := &lease.Call{Received: received.Time()}
			if err := do(c); !errors.Is(err, lease.ErrClockSkew) || c.Requests != 0 {
				t.Errorf("%s: %s: got error %v after %d requests, want ErrClockSkew", name, call, err, c.Requests)
			}
		}
		if sent := x.sent.take(); len(sent) != 0 {
			t.Errorf("%s: sent %v", name, sent)
		}
	}
	late := lease.WithCall(t.Context(), &lease.Call{Received: (now - day).Time()})
	state, err := s.Release(late, lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token})
	if sent := x.sent.take(); err != nil || state.Held || !slices.Equal(sent, []string{"UpdateItem"}) {
		t.Errorf("release: got %v, error %v, sent %v", state, err, sent)
	}
}
