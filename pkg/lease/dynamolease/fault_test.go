package dynamolease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

const (
	write = "UpdateItem"
	read  = "GetItem"
)

// faultTable is the table of all tests with faults: each has locks of its own.
const faultTable = "faults"

var createFaultTable struct {
	sync.Once
	err error
}

// A line is a store with a bad line to DynamoDB, and the same table seen from
// where the line is good. Both are for one lock of its own.
type line struct {
	*testing.T
	lease.Name
	proxy  *faultproxy.Proxy
	store  *dynamolease.Store // through the proxy
	direct *dynamolease.Store
}

// patient is how all lines begin. On a busy machine, an answer that takes longer
// than the default of a second would be a fault that nobody asked for.
func patient(o *dynamodb.Options) {
	o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(20 * time.Second)
}

// impatient is for answers that never come.
func impatient(o *dynamodb.Options) {
	o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(500 * time.Millisecond)
}

// normal is the client as it is in production.
func normal(o *dynamodb.Options) { o.HTTPClient = nil }

// newLine returns a line without faults. Changes to the options are for the
// client behind the proxy.
func newLine(t *testing.T, changes ...func(*dynamodb.Options)) line {
	t.Helper()
	engine := localtest.DynamoDBForTest(t)
	direct := dynamolease.NewClientFrom(engine.Options())
	createFaultTable.Do(func() {
		createFaultTable.err = dynamolease.CreateTable(context.Background(), direct, faultTable)
	})
	if err := createFaultTable.err; err != nil {
		t.Fatal(err)
	}
	l := line{
		T:      t,
		Name:   lease.Name{Namespace: "faults", Lock: lease.NewID()},
		proxy:  faultproxy.Start(t, engine.Endpoint),
		store:  &dynamolease.Store{Table: faultTable},
		direct: &dynamolease.Store{Table: faultTable},
	}
	o := engine.Options()
	o.BaseEndpoint = &l.proxy.URL
	for _, change := range append([]func(*dynamodb.Options){patient}, changes...) {
		change(&o)
	}
	good := engine.Options()
	patient(&good)
	l.direct.Client = following(l.direct, good)
	l.store.Client = following(l.store, good)
	warm(t, l.store)
	l.store.Client = following(l.store, o)
	return l
}

func (l line) request() lease.AcquireRequest {
	return lease.AcquireRequest{Name: l.Name, TTL: time.Minute, Holder: "worker-1", RequestID: lease.NewID()}
}

// must returns a function that ends the test unless what it is given worked.
func must[A any](t *testing.T) func(A, error) A {
	return func(a A, err error) A {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// take acquires the lock over the good line.
func (l line) take() lease.Lease {
	l.Helper()
	return must[lease.Lease](l.T)(l.direct.Acquire(l.Context(), l.request()))
}

// give releases it over the good line.
func (l line) give(held lease.Lease) {
	l.Helper()
	must[lease.State](l.T)(l.direct.Release(l.Context(), releaseOf(held)))
}

func (l line) state() lease.State {
	l.Helper()
	return must[lease.State](l.T)(l.direct.Get(l.Context(), l.Name))
}

// heldBy checks that the lock is held by a lease that lives as long as it said.
func (l line) heldBy(want lease.Lease) {
	l.Helper()
	if s := l.state(); !s.Held || s.Token != want.Token || !s.ExpiresAt.Equal(want.ExpiresAt) {
		l.Errorf("the lock is %s, want it held under %d until %v", show(s), want.Token, want.ExpiresAt)
	}
}

// show is needed because a state, with its name embedded, prints as its name.
func show(s lease.State) string {
	return fmt.Sprintf("{held: %v, token: %d, until: %v}", s.Held, s.Token, s.ExpiresAt)
}

func renewalOf(l lease.Lease, ttl time.Duration) lease.RenewRequest {
	return lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: ttl}
}

func releaseOf(l lease.Lease) lease.ReleaseRequest {
	return lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token}
}

func breakOf(l lease.Lease) lease.BreakRequest {
	return lease.BreakRequest{Name: l.Name, Token: l.Token, Reason: "a test"}
}

// meanings are the errors of which each failure is exactly one.
var meanings = []error{
	lease.ErrThrottled, lease.ErrUnavailable, lease.ErrMisconfigured, lease.ErrOutcomeUnknown,
	lease.ErrHeld, lease.ErrLost, lease.ErrTokenChanged, lease.ErrRequestSpent, lease.ErrRequestConflict,
}

// means checks that err is want and none of the others, and that it says how
// long to wait where that helps.
func (l line) means(what string, err, want error) {
	l.Helper()
	for _, m := range append(meanings, nil) {
		if errors.Is(err, m) != (m == want) {
			l.Errorf("%s: got error %v, want %v and nothing else", what, err, want)
			return
		}
	}
	var retry *lease.RetryError
	if cures := want == lease.ErrThrottled || want == lease.ErrUnavailable || want == lease.ErrOutcomeUnknown; errors.As(err, &retry) != cures || cures && retry.After <= 0 {
		l.Errorf("%s: got %#v, want a RetryError with a time: %v", what, err, cures)
	}
}
