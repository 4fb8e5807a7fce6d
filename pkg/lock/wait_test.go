package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// requestIDs returns the ids that were asked with.
func requestIDs(s *stub) map[string]bool {
	ids := make(map[string]bool)
	for _, c := range s.of("acquire") {
		ids[c.acquire.RequestID] = true
	}
	return ids
}

func TestAWaitIsMadeOfServerWaitsUnder30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		var longest time.Duration
		s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			started := time.Now()
			l, err := s.Service.Acquire(ctx, q)
			longest = max(longest, time.Since(started))
			return l, err
		}
		c := &lock.Client{Service: s}
		first := acquire(t, c, "a/b")
		time.AfterFunc(10*time.Minute, func() { release(t, first) })
		started := time.Now()
		h := acquire(t, c, "a/b")
		if took := time.Since(started) - 10*time.Minute; took < 0 || took > 1500*time.Millisecond {
			t.Errorf("granted %v after the release, want soon", took)
		}
		release(t, h)
		if calls := len(s.of("acquire")); longest >= 15*time.Second || calls < 40 || calls > 70 {
			t.Errorf("asked %d times, for up to %v, want about one request in 10 s", calls, longest)
		}
		if ids := requestIDs(s); len(ids) != 2 {
			t.Errorf("used %d request ids for two locks", len(ids))
		}
	})
}

// Without a server that waits, the client looks as often as it is told to.
func TestRetryAfterIsHonoured(t *testing.T) {
	for _, c := range []struct {
		err         error
		least, most time.Duration
	}{
		{&lease.HeldError{Remaining: time.Minute}, 500 * time.Millisecond, time.Second},
		{&lease.HeldError{Remaining: 100 * time.Millisecond}, 50 * time.Millisecond, 100 * time.Millisecond},
		{&lease.HeldError{}, 10 * time.Millisecond, 10 * time.Millisecond},
		{&lease.HeldError{Remaining: -time.Hour}, 10 * time.Millisecond, 10 * time.Millisecond},
		{lease.ErrHeld, 10 * time.Millisecond, 10 * time.Millisecond},
		{&lease.RetryError{Err: lease.ErrThrottled, After: 8 * time.Second}, 8 * time.Second, 10 * time.Second},
		{&lease.RetryError{Err: lease.ErrOutcomeUnknown, After: 8 * time.Second}, 8 * time.Second, 10 * time.Second},
		{&lease.RetryError{Err: lease.ErrQuarantine, After: time.Hour}, 30 * time.Second, 38 * time.Second},
		{&lease.RetryError{Err: lease.ErrUnavailable, After: -time.Hour}, 25 * time.Millisecond, 2 * time.Second},
		{lease.ErrRequestSpent, 25 * time.Millisecond, 2 * time.Second},
		{lease.ErrRequestConflict, 25 * time.Millisecond, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.acquire = failing[lease.AcquireRequest, lease.Lease](c.err)
			ctx, cancel := context.WithTimeout(t.Context(), 20*c.most)
			defer cancel()
			_, _ = (&lock.Client{Service: s}).Acquire(ctx, "a/b")
			calls := s.of("acquire")
			if len(calls) < 16 {
				t.Errorf("%v: asked %d times, want 16 and more", c.err, len(calls))
			}
			different := make(map[time.Duration]bool)
			first := 0
			if errors.Is(c.err, lock.ErrHeld) {
				first = 1 // the second call is the first in which the service is to wait
			}
			for i := first; i < len(calls)-1; i++ {
				gap := calls[i+1].at.Sub(calls[i].at)
				if different[gap] = true; gap < c.least || gap > c.most {
					t.Errorf("%v: asked again after %v, want %v to %v", c.err, gap, c.least, c.most)
				}
			}
			if c.least < c.most && len(different) < len(calls)/2 {
				t.Errorf("%v: %d calls at %d different times, want jitter", c.err, len(calls), len(different))
			}
			time.Sleep(2 * ttl) // in the background it is asked what became of the last request
		})
	}
}

func TestTheLockOfADeadHolderIsTakenOverInTime(t *testing.T) {
	const poll = time.Second
	for _, ttl := range []time.Duration{time.Second, 2 * time.Second, 15 * time.Second, time.Minute} {
		for _, delay := range []time.Duration{0, 5 * time.Second} {
			for phase := range 10 {
				synctest.Test(t, func(t *testing.T) {
					m := new(memlease.Store)
					n := lease.Name{Namespace: "a", Lock: "b"}
					dead, err := m.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: ttl, LockDelay: delay, Holder: "dead"})
					if err != nil {
						t.Fatal(err)
					}
					died := time.Now()
					time.Sleep(ttl * time.Duration(phase) / 10)
					h := acquire(t, &lock.Client{Service: m}, "a/b")
					if took := time.Since(died) - ttl - delay - skew; took < 0 || took > poll {
						t.Errorf("TTL %v, lock delay %v: taken over %v after it was free", ttl, delay, took)
					}
					if a := h.Abandoned(); a == nil || a.Token != dead.Token || a.Holder != "dead" {
						t.Errorf("got %v, want to be told of the dead holder", a)
					}
					release(t, h)
				})
			}
		}
	}
}

func TestOneTryTakesOverADeadHoldersLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memlease.Store{Rules: protocol.Rules{Skew: 100 * time.Millisecond}}
		if _, err := m.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: 2 * time.Second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2500 * time.Millisecond)
		h, err := (&lock.Client{Service: m}).TryAcquire(t.Context(), "a/b")
		if err != nil {
			t.Fatal(err)
		}
		release(t, h)
	})
}

func TestWhatIsGrantedAfterAWaitIsWorthHaving(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second} {
		for wait := 100 * time.Millisecond; wait < 30*time.Second; wait += 1700 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				c := &lock.Client{Service: new(memlease.Store), TTL: ttl}
				first := acquire(t, c, "a/b")
				time.AfterFunc(wait, func() { release(t, first) })
				h := acquire(t, c, "a/b")
				if left := time.Until(h.Deadline()); left < ttl/2 {
					t.Errorf("TTL %v: %v left after a wait of %v", ttl, left, wait)
				}
				release(t, h)
			})
		}
	}
}

func TestATryDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		first := acquire(t, &lock.Client{Service: s, Holder: "the first"}, "a/b")
		started := time.Now()
		_, err := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b")
		var held *lease.HeldError
		if !errors.As(err, &held) || time.Since(started) != 0 {
			t.Fatalf("got %v after %v, want ErrHeld at once", err, time.Since(started))
		}
		if held.Holder != "the first" || held.Remaining != ttl+skew || held.Token != first.Token() {
			t.Errorf("got %+v, want the holder and the remaining time", held)
		}
		for _, c := range s.of("acquire")[1:] {
			if c.acquire.Wait != 0 {
				t.Errorf("the service was asked to wait for %v", c.acquire.Wait)
			}
		}
		release(t, first)
	})
}

func TestTheSameHolderTwiceIsTwoHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		a := acquire(t, &lock.Client{Service: m, Holder: "worker"}, "a/b")
		if _, err := (&lock.Client{Service: m, Holder: "worker"}).TryAcquire(t.Context(), "a/b"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
		release(t, a)
	})
}
