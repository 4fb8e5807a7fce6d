package dynamolease_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// A liar is an HTTP client whose answers tell another time than they should.
type liar struct {
	ahead    atomic.Int64 // by so many nanoseconds
	requests atomic.Int32
	then     func() // after a request
}

func (l *liar) Do(r *http.Request) (*http.Response, error) {
	a, err := http.DefaultTransport.RoundTrip(r)
	l.requests.Add(1)
	if err != nil {
		return nil, err
	}
	a.Header.Set("Date", time.Now().Add(time.Duration(l.ahead.Load())).UTC().Format(http.TimeFormat))
	if l.then != nil {
		l.then()
	}
	return a, nil
}

// lyingStore is a store that has made no request yet.
func lyingStore(t *testing.T) (*dynamolease.Store, *liar) {
	t.Helper()
	x := newTable(t)
	l := new(liar)
	o := localtest.DynamoDBForTest(t).Options()
	o.HTTPClient = l
	return &dynamolease.Store{Client: dynamolease.NewClient(o), Table: x.name}, l
}

var clocked = lease.AcquireRequest{Name: lease.Name{Namespace: "clock", Lock: "a"}, TTL: time.Minute}

func TestWithoutAGatewayTheFirstGrantComparesTheClocks(t *testing.T) {
	s, l := lyingStore(t)
	granted, err := s.Acquire(t.Context(), clocked)
	if err != nil || l.requests.Load() != 2 {
		t.Fatalf("got %v, %v after %d requests, want a grant after 2", granted, err, l.requests.Load())
	}
	if _, err := s.Renew(t.Context(), lease.RenewRequest{Name: granted.Name, LeaseID: granted.ID, Token: granted.Token, TTL: time.Minute}); err != nil || l.requests.Load() != 3 {
		t.Errorf("renew: got %v after %d requests, want success after one more", err, l.requests.Load())
	}
}

func TestAHostWhoseClockIsOffGrantsNothing(t *testing.T) {
	for _, ahead := range []time.Duration{4 * time.Second, -4 * time.Second, time.Hour} {
		s, l := lyingStore(t)
		l.ahead.Store(int64(ahead))
		if got, err := s.Acquire(t.Context(), clocked); !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("%v: got %v, %v, want ErrClockSkew", ahead, got, err)
		}
		state, err := s.Get(t.Context(), clocked.Name)
		if err != nil || state.Token != 0 {
			t.Errorf("%v: the lock was granted: %v, %v", ahead, state, err)
		}
		l.ahead.Store(0) // someone has set the clock
		if _, err := s.Acquire(t.Context(), clocked); err != nil {
			t.Errorf("%v: after the clock was set: %v", ahead, err)
		}
	}
}

func TestAClockWithinTheSkewAndTheSecondOfTheHeaderGrants(t *testing.T) {
	for _, ahead := range []time.Duration{900 * time.Millisecond, -900 * time.Millisecond} {
		s, l := lyingStore(t)
		l.ahead.Store(int64(ahead))
		if _, err := s.Acquire(t.Context(), clocked); err != nil {
			t.Errorf("%v: %v", ahead, err)
		}
	}
}

func TestALeaseIsGivenBackIfItsAnswerTellsThatTheClockIsOff(t *testing.T) {
	s, l := lyingStore(t)
	l.then = func() { l.ahead.Store(int64(time.Minute)) } // after the first request
	if got, err := s.Acquire(t.Context(), clocked); !errors.Is(err, lease.ErrClockSkew) {
		t.Errorf("got %v, %v, want ErrClockSkew", got, err)
	}
	if state, err := s.Get(t.Context(), clocked.Name); err != nil || state.Held || state.Token == 0 {
		t.Errorf("got %v, %v, want it granted and released", state, err)
	}
}

func TestReleasingNeedsNoClock(t *testing.T) {
	s, l := lyingStore(t)
	granted, err := s.Acquire(t.Context(), clocked)
	if err != nil {
		t.Fatal(err)
	}
	l.ahead.Store(int64(time.Hour))
	if _, err := s.Release(t.Context(), lease.ReleaseRequest{Name: granted.Name, LeaseID: granted.ID, Token: granted.Token}); err != nil {
		t.Error(err)
	}
}
