package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func TestAnHourOfWorkIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lock.Client{Service: new(memlease.Store)}
		err := c.Do(t.Context(), "orders/42", func(ctx context.Context, _ fence.Token) error {
			time.Sleep(time.Hour)
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestRenewalIsAtAThirdOfTheTTLOrSomewhatBefore(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 15 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			c := &lock.Client{Service: s, TTL: ttl}
			h := acquire(t, c, "a/b")
			last := time.Now()
			time.Sleep(100 * ttl)
			release(t, h)
			different := make(map[time.Duration]bool)
			for _, call := range s.of("renew") {
				gap := call.at.Sub(last)
				if gap > ttl/3 || gap < ttl*3/10 {
					t.Errorf("renewed after %v, want %v to %v", gap, ttl*3/10, ttl/3)
				}
				last, different[gap] = call.at, true
			}
			if n := len(s.of("renew")); n < 299 || len(different) < n/2 {
				t.Errorf("got %d renewals after %d different times, want 300 and jitter", n, len(different))
			}
		})
	}
}

func TestARenewalNeverChangesTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		h := acquire(t, &lock.Client{Service: m}, "a/b")
		token := h.Token()
		time.Sleep(10 * ttl)
		s, err := m.Get(t.Context(), lease.Name{Namespace: "a", Lock: "b"})
		if err != nil || !s.Held || s.Token != token || h.Token() != token {
			t.Errorf("got %v, error %v, want it held under token %d", s, err, token)
		}
		release(t, h)
	})
}

// A renewal that was carried out, and whose answer was lost, is followed by one
// that extends nothing new, or little.
func TestALostAnswerToARenewalIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		held, granted := make(chan *lock.Held, 1), time.Now()
		s.renew = inTurn(unanswered(s.Service.Renew), func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			if got, want := (<-held).Deadline(), granted.Add(ttl-margin); !got.Equal(want) {
				t.Errorf("trusted until %v after a renewal of unknown outcome, want the old deadline, %v", got, want)
			}
			return s.Service.Renew(ctx, q)
		})
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		held <- h
		time.Sleep(ttl/3 + ttl/20)
		synctest.Wait()
		calls := s.of("renew")
		if len(calls) != 2 || !h.Deadline().Equal(calls[1].at.Add(ttl-margin)) {
			t.Errorf("got %d renewals, deadline %v, want another at once that extends it", len(calls), h.Deadline())
		}
		release(t, h)
	})
}

func TestTransientFailuresNeverEndRenewal(t *testing.T) {
	for _, failure := range []error{
		lease.ErrOutcomeUnknown,
		lease.ErrUnavailable,
		&lease.RetryError{Err: lease.ErrThrottled, After: time.Minute},
		&lease.RetryError{Err: lease.ErrClockSkew, After: time.Second},
		lease.ErrQuarantine,
		lease.ErrMisconfigured,
		lease.ErrForbidden,
		errors.New("connection reset"),
	} {
		t.Run(failure.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				fail := failing[lease.RenewRequest, lease.Lease](failure)
				s.renew = inTurn(fail, fail, fail, s.Service.Renew)
				var seen events
				h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
				time.Sleep(10 * ttl)
				if err := h.Err(); err != nil || seen.count(lock.Lost) != 0 {
					t.Errorf("got %v, want it held", err)
				}
				if n := seen.count(lock.Unrenewed); n != 3 {
					t.Errorf("told of %d failures, want 3", n)
				}
				release(t, h)
			})
		})
	}
}

func TestARefusalEndsTheLockAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		if _, err := s.Break(t.Context(), lease.BreakRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, Token: h.Token(), Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		<-h.Lost()
		if took := time.Since(started); took > ttl/3 {
			t.Errorf("lost after %v, want by the next renewal", took)
		}
		if err := h.Err(); !errors.Is(err, lock.ErrLost) || !errors.Is(err, lock.ErrNotHeld) || errors.Is(err, lock.ErrUnconfirmed) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("the work ended with %v, want ErrLost", cause)
		}
		time.Sleep(3 * ttl)
		if n := len(s.of("renew")); n != 1 {
			t.Errorf("got %d renewals, want none after the refusal", n)
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) || len(s.of("release")) != 0 {
			t.Errorf("released %d times: %v, want ErrLost without asking", len(s.of("release")), err)
		}
	})
}

// The name is free again, and a renewal that found it so might take it.
func TestAnExpiredLeaseIsNotRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		began := time.Now()
		s.renew = during(began, began.Add(30*time.Second), failing[lease.RenewRequest, lease.Lease](lease.ErrUnavailable), s.Service.Renew)
		other := &lock.Client{Service: s.Service}
		a := acquire(t, &lock.Client{Service: s, Holder: "the same text"}, "a/b")
		b := acquire(t, other, "a/b")
		release(t, b)
		time.Sleep(time.Minute)
		if err := a.Err(); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("got %v, want that it was lost", err)
		}
		c := acquire(t, &lock.Client{Service: s.Service, Holder: "the same text"}, "a/b")
		if c.Token() <= b.Token() || b.Token() <= a.Token() {
			t.Errorf("got tokens %d, %d, %d, want them to grow", a.Token(), b.Token(), c.Token())
		}
		release(t, c)
	})
}
