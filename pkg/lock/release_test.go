package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func TestTrustEndsWhenTheReleaseIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		held := make(chan *lock.Held, 1)
		s.release = func(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
			h := <-held
			if err := h.Err(); !errors.Is(err, lock.ErrNotHeld) || h.Context().Err() == nil {
				t.Errorf("got %v, work ended: %v, want it over before the service is asked", err, h.Context().Err())
			}
			return s.Service.Release(ctx, q)
		}
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		held <- h
		release(t, h)
		select {
		case <-h.Lost():
			t.Error("a release is no loss")
		default:
		}
		if err := h.Err(); errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrUnconfirmed) {
			t.Errorf("got %v, want neither of the losses", err)
		}
	})
}

func TestALockCanBeReleasedAfterTheCallersContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		ctx, cancel := context.WithCancel(t.Context())
		h, err := (&lock.Client{Service: m}).Acquire(ctx, "a/b")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if h.Err() != nil || h.Context().Err() != nil {
			t.Error("the context of the wait ended the lock")
		}
		if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
		other, err := (&lock.Client{Service: m}).TryAcquire(t.Context(), "a/b")
		if err != nil {
			t.Fatalf("got %v, want the lock free at once", err)
		}
		release(t, other)
	})
}

func TestAReleaseThatFailedCanBeRepeated(t *testing.T) {
	for _, failure := range []error{lease.ErrUnavailable, lease.ErrThrottled, lease.ErrOutcomeUnknown, lease.ErrForbidden} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			until := time.Now().Add(10 * time.Second)
			s.release = during(time.Now(), until, failing[lease.ReleaseRequest, lease.State](failure), s.Service.Release)
			h := acquire(t, &lock.Client{Service: s}, "a/b")
			started := time.Now()
			if err := h.Release(t.Context()); !errors.Is(err, failure) {
				t.Errorf("got %v, want %v", err, failure)
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("%v: took %v, want 5 s at most", failure, took)
			}
			if n := len(s.of("release")); (n > 1) != !errors.Is(failure, lease.ErrForbidden) {
				t.Errorf("%v: asked %d times, want repeats where they can help", failure, n)
			}
			time.Sleep(time.Until(until))
			release(t, h)
			release(t, h)
			if _, err := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b"); err != nil {
				t.Errorf("%v: got %v, want it free", failure, err)
			}
		})
	}
}

// The first answer was lost, and somebody else was granted the lock before the
// repeat arrived.
func TestAfterAReleaseOfUnknownOutcomeLostMeansDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.release = inTurn(func(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
			if _, err := s.Service.Release(ctx, q); err != nil {
				t.Error(err)
			}
			for range 2 { // the service still knows of the last holder but one
				if _, err := s.Service.Acquire(ctx, lease.AcquireRequest{Name: q.Name, TTL: ttl}); err != nil && !errors.Is(err, lease.ErrHeld) {
					t.Error(err)
				}
				n, _ := s.Get(ctx, q.Name)
				if _, err := s.Break(ctx, lease.BreakRequest{Name: q.Name, Token: n.Token, Reason: "test"}); err != nil {
					t.Error(err)
				}
			}
			return lease.State{}, lease.ErrOutcomeUnknown
		}, s.Service.Release)
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		release(t, h)
		if n := len(s.of("release")); n != 2 || seen.count(lock.Lost) != 0 || seen.count(lock.Released) != 1 {
			t.Errorf("asked %d times, told of %v, want two and no loss", n, seen.kinds())
		}
	})
}

func TestAHolderThatIsLateDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = silence
		a := acquire(t, &lock.Client{Service: s, TTL: time.Second}, "a/b")
		time.Sleep(2 * time.Second)
		b := acquire(t, &lock.Client{Service: s.Service}, "a/b")
		before, err := s.Get(t.Context(), lease.Name{Namespace: "a", Lock: "b"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := a.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("got %v, want ErrLost", err)
			}
		}
		after, err := s.Get(t.Context(), lease.Name{Namespace: "a", Lock: "b"})
		if err != nil || !after.Held || after.Token != b.Token() || !after.ExpiresAt.Equal(before.ExpiresAt) {
			t.Errorf("got %v, error %v, want %v", after, err, before)
		}
		if n := len(s.of("release")); n != 1 {
			t.Errorf("asked %d times, want once: that answer is final", n)
		}
		release(t, b)
	})
}

// held is for how long a lock is held: a release may beat the first renewal.
var held = []time.Duration{0, time.Second, ttl / 3, ttl, 3 * ttl}

// A bubble fails at its end if a goroutine is left in it that waits.
func TestNoGoroutineIsLeftAfterRelease(t *testing.T) {
	for _, d := range held {
		synctest.Test(t, func(t *testing.T) {
			h := acquire(t, &lock.Client{Service: new(memlease.Store)}, "a/b")
			time.Sleep(d)
			release(t, h)
		})
	}
}

func TestNothingIsRenewedAfterRelease(t *testing.T) {
	for _, d := range held {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			h := acquire(t, &lock.Client{Service: s}, "a/b")
			time.Sleep(d)
			release(t, h)
			renewals := len(s.of("renew"))
			time.Sleep(ttl)
			if n := len(s.of("renew")); n != renewals {
				t.Errorf("got %d renewals after the release", n-renewals)
			}
		})
	}
}

func TestAReleaseEndsTheRenewalUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		ended := false
		s.renew = func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			defer func() { ended = true }()
			return silence[lease.RenewRequest, lease.Lease](ctx, q)
		}
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		time.Sleep(ttl/3 + time.Millisecond)
		started := time.Now()
		release(t, h)
		if took := time.Since(started); took != 0 || !ended {
			t.Errorf("took %v, renewal ended: %v, want it ended first, and no wait", took, ended)
		}
		if seen.count(lock.Unrenewed) != 0 || seen.count(lock.Lost) != 0 {
			t.Errorf("told of %v, want nothing of what Release itself did", seen.kinds())
		}
	})
}

func TestARenewalThatDoesNotListenHoldsUpNoRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = slowly(ttl, 0, s.Service.Renew)
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		time.Sleep(ttl / 3)
		started := time.Now()
		release(t, h)
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("took %v, want 5 s at most", took)
		}
		time.Sleep(ttl) // the renewal ends with the test
	})
}

func TestOneRequestThatHangsDoesNotUseUpTheTimeOfARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.release = inTurn(silence[lease.ReleaseRequest, lease.State], s.Service.Release)
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		release(t, h)
		s.release = silence
		h = acquire(t, &lock.Client{Service: s}, "a/b")
		started := time.Now()
		if err := h.Release(t.Context()); err == nil || time.Since(started) > 5*time.Second {
			t.Errorf("got %v after %v, want a failure within 5 s", err, time.Since(started))
		}
	})
}

func TestReleasesAtTheSameTimeAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { release(t, h) })
		}
		all.Wait()
		if n := len(s.of("release")); n != 1 || seen.count(lock.Released) != 1 {
			t.Errorf("asked %d times, told of %v, want one release", n, seen.kinds())
		}
	})
}
