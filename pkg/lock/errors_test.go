package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// branches are the errors of an acquire that a caller tells apart.
var branches = map[string]error{
	"held":         lock.ErrHeld,
	"wait timeout": lock.ErrWaitTimeout,
	"cancelled":    context.Canceled,
	"undecided":    lock.ErrUndecided,
}

// only fails unless err matches one of the branches, and want is that one.
func only(t *testing.T, err error, want string) {
	t.Helper()
	for name, branch := range branches {
		also := name == "held" && want == "wait timeout" // one handler serves a try and a wait
		if got := errors.Is(err, branch); got != (name == want || also) {
			t.Errorf("%v: matches %q: %v, want %q and nothing else", err, name, got, want)
		}
	}
}

func TestContentionTimeoutCancelAndOutageAreFourErrors(t *testing.T) {
	held := refuse(&lease.HeldError{Holder: "another", Remaining: time.Minute})
	try := (*lock.Client).TryAcquire
	wait := (*lock.Client).Acquire
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return ctx, cancel
	}
	limited := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 20*time.Second)
	}
	unlimited := func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }
	for _, c := range []struct {
		name    string
		service acquireFunc
		take    func(*lock.Client, context.Context, string) (*lock.Held, error)
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		want    string
	}{
		{"a try while it is held", held, try, unlimited, "held"},
		{"a wait while it is held", held, wait, limited, "wait timeout"},
		{"a wait that the service takes part in", nil, wait, limited, "wait timeout"},
		{"a wait that ends in an outage", inTurn(held, refuse(lease.ErrThrottled)), wait, limited, "undecided"},
		{"a wait that ends in silence", inTurn(held, silence[lease.AcquireRequest, lease.Lease]), wait, limited, "undecided"},
		{"a cancelled wait", held, wait, cancelled, "cancelled"},
		{"a cancelled try", silence[lease.AcquireRequest, lease.Lease], try, cancelled, "cancelled"},
		{"a wait that is cancelled in an outage", refuse(lease.ErrUnavailable), wait, cancelled, "cancelled"},
		{"a wait for a service that is silent", silence[lease.AcquireRequest, lease.Lease], wait, limited, "undecided"},
		{"a short wait for a service that is silent", silence[lease.AcquireRequest, lease.Lease], wait, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, "undecided"},
		{"a wait in an outage", refuse(lease.ErrUnavailable), wait, limited, "undecided"},
		{"a throttled wait", refuse(lease.ErrThrottled), wait, limited, "undecided"},
		{"a try of a service that is silent", silence[lease.AcquireRequest, lease.Lease], try, unlimited, "undecided"},
		{"a try in an outage", refuse(lease.ErrUnavailable), try, unlimited, "undecided"},
		{"a throttled try", refuse(lease.ErrThrottled), try, unlimited, "undecided"},
		{"a try in a quarantine", refuse(lease.ErrQuarantine), try, unlimited, "undecided"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				if _, err := s.Service.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
				s.acquire = c.service
				ctx, cancel := c.ctx(t.Context())
				defer cancel()
				started := time.Now()
				_, err := c.take(&lock.Client{Service: s}, ctx, "a/b")
				only(t, err, c.want)
				if took := time.Since(started); took > 20*time.Second {
					t.Errorf("took %v, want an answer by the deadline", took)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestATimeoutTellsOfTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		h := acquire(t, &lock.Client{Service: m, Holder: "the first"}, "a/b")
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		_, err := (&lock.Client{Service: m}).Acquire(ctx, "a/b")
		var timeout *lock.WaitError
		if !errors.As(err, &timeout) || timeout.Held.Holder != "the first" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrWaitTimeout with the holder", err)
		}
		release(t, h)
		time.Sleep(time.Minute)
	})
}

func TestWhatNeedsARepairFailsAtOnce(t *testing.T) {
	for _, want := range []error{lease.ErrForbidden, lease.ErrInvalid, lock.ErrMisconfigured} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.acquire = refuse(want)
			var seen events
			c := &lock.Client{Service: s, Observe: seen.observe}
			started := time.Now()
			_, wait := c.Acquire(t.Context(), "a/b")
			_, try := c.TryAcquire(t.Context(), "a/b")
			if !errors.Is(wait, want) || !errors.Is(try, want) || time.Since(started) != 0 {
				t.Errorf("got %v and %v after %v, want %v at once", wait, try, time.Since(started), want)
			}
			only(t, wait, "")
			if seen.count(lock.Refused) != 2 {
				t.Errorf("told of %v, want both", seen.kinds())
			}
		})
	}
}

func TestBothLossesMatchErrNotHeldAndNotEachOther(t *testing.T) {
	for _, c := range []struct{ err, other error }{{lock.ErrLost, lock.ErrUnconfirmed}, {lock.ErrUnconfirmed, lock.ErrLost}} {
		if !errors.Is(c.err, lock.ErrNotHeld) || errors.Is(c.err, c.other) {
			t.Errorf("%v: want it to match ErrNotHeld and not %v", c.err, c.other)
		}
	}
}

// A function that would be killed in the middle of its wait wants to know
// before.
func TestACallerWithLittleTimeIsToldHowLongItWouldTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		h := acquire(t, &lock.Client{Service: m, TTL: 15 * time.Minute}, "a/b")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		started := time.Now()
		_, err := (&lock.Client{Service: m}).TryAcquire(ctx, "a/b")
		var held *lease.HeldError
		if !errors.As(err, &held) || held.Remaining < 14*time.Minute || time.Since(started) != 0 {
			t.Errorf("got %v after %v, want ErrHeld with the remaining time at once", err, time.Since(started))
		}
		release(t, h)
	})
}
