package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

type acquireFunc = func(context.Context, lease.AcquireRequest) (lease.Lease, error)

func refuse(err error) acquireFunc { return failing[lease.AcquireRequest, lease.Lease](err) }

func TestTheRequestIDStaysThroughRetries(t *testing.T) {
	for _, try := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.acquire = inTurn(
				refuse(lease.ErrOutcomeUnknown),
				refuse(lease.ErrThrottled),
				refuse(errors.New("connection reset")),
				unanswered(s.Service.Acquire),
				refuse(lease.ErrUnavailable),
				s.Service.Acquire)
			c := &lock.Client{Service: s}
			take := c.Acquire
			if try {
				take = c.TryAcquire
			}
			h, err := take(t.Context(), "a/b")
			if err != nil {
				t.Fatal(err)
			}
			if calls, ids := len(s.of("acquire")), len(requestIDs(s)); calls != 6 || ids != 1 {
				t.Errorf("asked %d times with %d ids, want 6 with one", calls, ids)
			}
			if _, err := c.TryAcquire(t.Context(), "a/b"); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("got %v, want ErrHeld: another attempt is another request", err)
			}
			release(t, h)
		})
	}
}

// The one that was not answered may have been granted: a wait would be for the
// end of our own lease.
func TestARepeatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = inTurn(unanswered(s.Service.Acquire), s.Service.Acquire)
		started := time.Now()
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		if took := time.Since(started); took > 100*time.Millisecond {
			t.Errorf("took %v, want the lease of the first request at once", took)
		}
		if w := s.of("acquire")[1].acquire.Wait; w != 0 {
			t.Errorf("the repeat waits for %v", w)
		}
		release(t, h)
	})
}

func TestAfterARefusalTheServiceWaitsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = inTurn(refuse(lease.ErrOutcomeUnknown), refuse(&lease.HeldError{Remaining: time.Second}), s.Service.Acquire)
		release(t, acquire(t, &lock.Client{Service: s}, "a/b"))
		if w := s.of("acquire")[2].acquire.Wait; w == 0 {
			t.Error("nothing is in doubt any more, and the request does not wait")
		}
	})
}

func TestALeaseWithTooLittleLeftIsNotAskedForWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		short := func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			l, err := s.Service.Acquire(ctx, q)
			l.Remaining = margin
			return l, err
		}
		s.acquire = inTurn(short, short, short, short, s.Service.Acquire)
		release(t, acquire(t, &lock.Client{Service: s}, "a/b"))
		calls := s.of("acquire")
		for i := 2; i < len(calls); i++ { // the first may have been short because of the wait
			if gap := calls[i].at.Sub(calls[i-1].at); gap == 0 {
				t.Errorf("asked for the %dth time at once", i)
			}
		}
	})
}

func TestASpentRequestIsFollowedByANewOne(t *testing.T) {
	for _, spent := range []error{lease.ErrRequestSpent, lease.ErrRequestConflict} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.acquire = inTurn(refuse(spent), refuse(lease.ErrOutcomeUnknown), s.Service.Acquire)
			release(t, acquire(t, &lock.Client{Service: s}, "a/b"))
			calls := s.of("acquire")
			if ids := requestIDs(s); len(calls) != 3 || len(ids) != 2 || calls[1].acquire.RequestID != calls[2].acquire.RequestID {
				t.Errorf("%v: asked %d times with %d ids, want a new one once", spent, len(calls), len(ids))
			}
		})
	}
}

func TestAGrantThatIsNoticedTooLateIsLeftToRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		granted := unanswered(s.Service.Acquire)
		began := time.Now()
		s.acquire = during(began, began.Add(ttl-time.Second), func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			if time.Now().Equal(began) {
				return granted(ctx, q)
			}
			return lease.Lease{}, lease.ErrUnavailable
		}, s.Service.Acquire)
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		if took := time.Since(began); took < ttl+skew || took > ttl+skew+3*time.Second {
			t.Errorf("granted after %v, want when the first grant was over", took)
		}
		if ids := requestIDs(s); len(ids) != 2 {
			t.Errorf("used %d ids, want two", len(ids))
		}
		release(t, h)
	})
}

func TestWhatNoDeploymentAllowsIsRefusedBeforeItIsSent(t *testing.T) {
	for _, c := range []lock.Client{
		{TTL: time.Millisecond},
		{TTL: -time.Second},
		{TTL: 1<<63 - 1},
		{Margin: ttl / 2},
		{Margin: -1},
		{Metadata: "\x00"},
		{Holder: "two\nlines"},
		{MinHold: time.Hour},
		{LockDelay: -1},
	} {
		s := newStub()
		c.Service = s
		for name, take := range map[string]func(context.Context, string) (*lock.Held, error){"acquire": c.Acquire, "try": c.TryAcquire} {
			_, err := take(t.Context(), "a/b")
			if !errors.Is(err, lease.ErrInvalid) || len(s.of("acquire")) != 0 {
				t.Errorf("%+v, %s: got %v after %d requests, want it invalid", c, name, err, len(s.of("acquire")))
			}
		}
	}
	for _, name := range []string{"", "a", "/", "a/", "/b", "A/b", "a/\xff"} {
		if _, err := (&lock.Client{Service: newStub()}).Acquire(t.Context(), name); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("lock %q: got %v, want it invalid", name, err)
		}
	}
}

func TestDurationsAreRoundedUpToMilliseconds(t *testing.T) {
	s := newStub()
	c := &lock.Client{Service: s, TTL: 10 * time.Second / 3, MinHold: time.Second / 3, LockDelay: time.Nanosecond}
	release(t, acquire(t, c, "a/b"))
	q := s.of("acquire")[0].acquire
	if q.TTL != 3334*time.Millisecond || q.MinHold != 334*time.Millisecond || q.LockDelay != time.Millisecond {
		t.Errorf("asked for %v, %v, %v, want whole milliseconds, and no less", q.TTL, q.MinHold, q.LockDelay)
	}
}

func TestAnErrorNamesTheFieldThatTheCallerKnows(t *testing.T) {
	for _, c := range []struct {
		client lock.Client
		want   string
	}{
		{lock.Client{MinHold: 10 * time.Minute}, "MinHold: is 10m0s, want at most the TTL, 15s"},
		{lock.Client{Margin: 10 * time.Second}, "Margin: is 10s, want less than half of the TTL, 15s"},
		{lock.Client{TTL: time.Millisecond}, "TTL: "},
		{lock.Client{Holder: "two\nlines"}, "Holder: "},
		{lock.Client{LockDelay: -1}, "LockDelay: "},
	} {
		c.client.Service = newStub()
		_, err := c.client.TryAcquire(t.Context(), "a/b")
		if !errors.Is(err, lease.ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	_, err := new(lock.Client).TryAcquire(t.Context(), "a/b")
	if !errors.Is(err, lock.ErrMisconfigured) || !strings.Contains(err.Error(), "Client.Service is nil") {
		t.Errorf("without a service: got %v", err)
	}
}

func TestTheRequestSaysWhatTheClientWants(t *testing.T) {
	s := newStub()
	c := &lock.Client{Service: s, TTL: time.Minute, Holder: "me", Metadata: "text", MinHold: 2 * time.Second, LockDelay: 3 * time.Second}
	release(t, acquire(t, c, "a/b/c"))
	got := s.of("acquire")[0].acquire
	want := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b/c"}, TTL: time.Minute, Holder: "me", Metadata: "text",
		MinHold: 2 * time.Second, LockDelay: 3 * time.Second, RequestID: got.RequestID, Wait: got.Wait}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s = newStub()
	release(t, acquire(t, &lock.Client{Service: s}, "a/b"))
	if got := s.of("acquire")[0].acquire; got.Holder == "" || got.TTL != 15*time.Second {
		t.Errorf("got %+v, want a holder that says which process it is, and 15 s", got)
	}
}
