package dynamolease_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// between makes a store, as slow as a clock that stands at now, that calls f
// before each of its requests.
func (x table) between(now protocol.Instant, f func(request int)) *dynamolease.Store {
	s := x.store(&now, protocol.Rules{})
	o := s.Client.Options()
	o.HTTPClient = &hooked{o.HTTPClient, f, 0}
	s.Client = dynamolease.NewClientFrom(o)
	return s
}

// hooked is an HTTP client that calls a function before each request.
type hooked struct {
	dynamodb.HTTPClient
	before  func(request int)
	request int
}

// Do sends a request of the SDK.
func (h *hooked) Do(r *http.Request) (*http.Response, error) {
	h.request++
	h.before(h.request)
	return h.HTTPClient.Do(r)
}

// grantAhead grants a lock on a clock that is a day ahead, and releases it: every
// grant of the next day takes two requests.
func (x table) grantAhead(q lease.AcquireRequest) {
	x.Helper()
	ahead := noon + day
	s := x.store(&ahead, protocol.Rules{})
	x.grantAndRelease(s, q)
}

func (x table) grantAndRelease(s *dynamolease.Store, q lease.AcquireRequest) lease.Lease {
	x.Helper()
	q.RequestID = lease.NewID()
	l, err := s.Acquire(context.Background(), q)
	if err != nil {
		x.Fatal(err)
	}
	if _, err := s.Release(context.Background(), lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token}); err != nil {
		x.Fatal(err)
	}
	return l
}

var contested = lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute, Holder: "worker-1"}

// The token that the second request compares is still the same. Both statements
// of a slow grant must look at the time too.
func TestARenewalBetweenTheTwoRequestsOfASlowGrantKeepsTheLease(t *testing.T) {
	for _, metadata := range []string{"", "job 1"} {
		x := newTable(t)
		x.grantAhead(contested)
		now := noon
		s := x.store(&now, protocol.Rules{})
		l, err := s.Acquire(t.Context(), contested)
		if err != nil {
			t.Fatal(err)
		}
		slow := x.between(noon+minute+second, func(request int) {
			if request != 2 {
				return
			}
			now = noon + minute - ms // another clock, within the skew
			if _, err := s.Renew(t.Context(), lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: time.Minute}); err != nil {
				t.Error(err)
			}
		})
		call, q := new(lease.Call), contested
		q.Metadata = metadata
		got, err := slow.Acquire(lease.WithCall(t.Context(), call), q)
		var held *lease.HeldError
		if !errors.As(err, &held) || held.Token != l.Token || call.Requests != 2 {
			t.Errorf("with metadata %q: got token %d, error %v after %d requests, want it held under %d after 2", metadata, got.Token, err, call.Requests, l.Token)
		}
	}
}

func TestAGrantBetweenTheTwoRequestsOfASlowGrantIsNotOverwritten(t *testing.T) {
	x := newTable(t)
	x.grantAhead(contested)
	now := noon
	var other lease.Lease
	slow := x.between(noon, func(request int) {
		if request == 2 {
			var err error
			if other, err = x.store(&now, protocol.Rules{}).Acquire(t.Context(), contested); err != nil {
				t.Error(err)
			}
		}
	})
	got, err := slow.Acquire(t.Context(), contested)
	var held *lease.HeldError
	if !errors.As(err, &held) || held.Token != other.Token {
		t.Errorf("got token %d, error %v, want it held under %d", got.Token, err, other.Token)
	}
}

// Retired between the requests, the lock starts again.
func TestALockThatIsForgottenBetweenTheTwoRequestsIsGranted(t *testing.T) {
	x := newTable(t)
	x.grantAhead(contested)
	slow := x.between(noon, func(request int) {
		if request == 2 {
			x.forget(contested.Name)
		}
	})
	call := new(lease.Call)
	if l, err := slow.Acquire(lease.WithCall(t.Context(), call), contested); err != nil || protocol.Instant(l.Token) != noon+1 || call.Requests != 3 {
		t.Errorf("got token %d, error %v after %d requests, want a first token after 3", l.Token, err, call.Requests)
	}
}

func TestAnAcquireThatIsOvertakenAgainAndAgainGivesUp(t *testing.T) {
	x := newTable(t)
	x.grantAhead(contested)
	now := noon
	s := x.store(&now, protocol.Rules{})
	slow := x.between(noon, func(int) { x.grantAndRelease(s, contested) })
	call := new(lease.Call)
	l, err := slow.Acquire(lease.WithCall(t.Context(), call), contested)
	var retry *lease.RetryError
	if !errors.Is(err, lease.ErrUnavailable) || !errors.As(err, &retry) || retry.After <= 0 || retry.After > time.Second {
		t.Errorf("got token %d, error %v, want ErrUnavailable, to be tried again soon", l.Token, err)
	}
	if call.Requests != 4 {
		t.Errorf("gave up after %d requests, want 4", call.Requests)
	}
	if state, err := s.Get(t.Context(), contested.Name); err != nil || state.Held {
		t.Errorf("got %v, error %v, want it free", state, err)
	}
}
