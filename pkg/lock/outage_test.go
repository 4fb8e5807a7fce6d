package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func down(s *stub, from, to time.Time, err error) {
	s.acquire = during(from, to, refuse(err), s.Service.Acquire)
	s.renew = during(from, to, failing[lease.RenewRequest, lease.Lease](err), s.Service.Renew)
	s.release = during(from, to, failing[lease.ReleaseRequest, lease.State](err), s.Service.Release)
}

func TestAnOutageOfHalfATTLIsSurvivedWheneverItBegins(t *testing.T) {
	for _, err := range []error{lease.ErrUnavailable, &lease.RetryError{Err: lease.ErrOutcomeUnknown, After: time.Minute}} {
		for begins := time.Duration(0); begins < ttl; begins += 250 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				from := time.Now().Add(time.Minute + begins)
				down(s, from, from.Add(ttl/2), err)
				h := acquire(t, &lock.Client{Service: s}, "a/b")
				time.Sleep(2 * time.Minute)
				if lost := h.Err(); lost != nil {
					t.Errorf("%v, from %v on: got %v, want it held", err, begins, lost)
				}
				release(t, h)
			})
		}
	}
}

// An outage of two thirds is survived when it begins right after a renewal. In
// any case the bound holds: the work has ended before anybody else gets in.
func TestInAnOutageOfTwoThirdsOfATTLTheBoundHolds(t *testing.T) {
	const outage = ttl * 2 / 3
	survived, phases := 0, 0
	for begins := time.Duration(0); begins < ttl; begins += 100 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			from := time.Now().Add(time.Minute + begins)
			down(s, from, from.Add(outage), lease.ErrUnavailable)
			var ended time.Time
			err := (&lock.Client{Service: s}).Do(t.Context(), "a/b", func(ctx context.Context, _ fence.Token) error {
				waiter := make(chan time.Time)
				go func() {
					h := acquire(t, &lock.Client{Service: s.Service}, "a/b")
					waiter <- time.Now()
					release(t, h)
				}()
				select {
				case <-ctx.Done():
				case <-time.After(2 * time.Minute):
					survived++
					time.AfterFunc(time.Millisecond, func() { <-waiter })
					return nil
				}
				ended = time.Now()
				if got := <-waiter; got.Before(ended.Add(margin)) || got.After(ended.Add(margin+skew+time.Second)) {
					t.Errorf("ended at %v, the next was granted at %v", ended, got)
				}
				return nil
			})
			if lost := !ended.IsZero(); lost != errors.Is(err, lock.ErrUnconfirmed) {
				t.Errorf("lost: %v, got %v", lost, err)
			}
			time.Sleep(time.Minute)
		})
		phases++
	}
	t.Logf("survived %d of %d", survived, phases)
	if survived < phases/2 {
		t.Errorf("survived %d of %d, want most", survived, phases)
	}
}

func TestThrottlingIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 30 * time.Second
		s := newStub()
		var n atomic.Int64
		throttle := func() bool { return n.Add(1)%5 < 3 } // 60 %
		throttled := &lease.RetryError{Err: lease.ErrThrottled, After: time.Second}
		s.renew = func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			if throttle() {
				return lease.Lease{}, throttled
			}
			return s.Service.Renew(ctx, q)
		}
		s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			if throttle() {
				return lease.Lease{}, throttled
			}
			return s.Service.Acquire(ctx, q)
		}
		h := acquire(t, &lock.Client{Service: s, TTL: ttl}, "a/b")
		for range 20 {
			time.Sleep(ttl / 10)
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b"); !errors.Is(err, lock.ErrHeld) && !errors.Is(err, lease.ErrThrottled) {
				t.Errorf("got %v, want ErrHeld or ErrThrottled", err)
			}
		}
		release(t, h)
	})
}

func TestInABlackoutTheLossIsToldOnceAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		dark := time.Now().Add(time.Minute)
		s.renew = during(dark, dark.Add(2*ttl), silence, s.Service.Renew)
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		time.Sleep(time.Minute)
		var last time.Time // of the renewals that were answered
		for _, c := range s.of("renew") {
			last = c.at
		}
		<-h.Lost()
		if got := time.Since(last); got != ttl-margin {
			t.Errorf("lost %v after the last good renewal was sent, want %v", got, ttl-margin)
		}
		for range 100 {
			if err := h.Err(); !errors.Is(err, lock.ErrUnconfirmed) {
				t.Errorf("got %v, want ErrUnconfirmed", err)
			}
			time.Sleep(time.Second)
		}
		if n := seen.count(lock.Lost); n != 1 {
			t.Errorf("told %d times", n)
		}
		release(t, h)
	})
}

// A request that hangs is given up while there is time for another.
func TestOneConnectionThatHangsLosesNothing(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, ttl, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			hang := silence[lease.RenewRequest, lease.Lease]
			s.renew = inTurn(hang, s.Service.Renew, hang, s.Service.Renew)
			h := acquire(t, &lock.Client{Service: s, TTL: ttl}, "a/b")
			time.Sleep(3 * ttl)
			if err := h.Err(); err != nil {
				t.Errorf("TTL %v: got %v, want it held", ttl, err)
			}
			release(t, h)
		})
	}
}
