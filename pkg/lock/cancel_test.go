package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// atOnce is how long a cancelled call may take.
const atOnce = 100 * time.Millisecond

func TestACancelledWaitReturnsAtOnce(t *testing.T) {
	for name, acquire := range map[string]acquireFunc{
		"while the service waits":         nil,
		"while there is no answer":        silence[lease.AcquireRequest, lease.Lease],
		"between two requests":            refuse(&lease.RetryError{Err: lease.ErrQuarantine, After: time.Hour}),
		"of a service that hears nothing": slowly(time.Minute, 0, refuse(lease.ErrUnavailable)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				if _, err := s.Service.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
				s.acquire = acquire
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				time.AfterFunc(7*time.Second, cancel)
				started := time.Now()
				_, err := (&lock.Client{Service: s}).Acquire(ctx, "a/b")
				if !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrWaitTimeout) || errors.Is(err, lock.ErrUndecided) {
					t.Errorf("got %v, want that it was cancelled", err)
				}
				if took := time.Since(started) - 7*time.Second; took > atOnce {
					t.Errorf("returned %v after it was cancelled", took)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

func TestAContextThatHasEndedAsksForNothing(t *testing.T) {
	s := newStub()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("shutting down")
	cancel(reason)
	if _, err := (&lock.Client{Service: s}).Acquire(ctx, "a/b"); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("got %v, want that it was cancelled, and why", err)
	}
	if n := len(s.of("acquire")); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// free fails unless anybody can have the lock now.
func free(t *testing.T, s lease.Service) {
	t.Helper()
	h, err := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b")
	if err != nil {
		t.Errorf("got %v, want the lock free", err)
		return
	}
	release(t, h)
}

func TestAGrantThatArrivesAfterTheCancelIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		first := acquire(t, &lock.Client{Service: s}, "a/b")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		time.AfterFunc(3*time.Second, cancel)
		var seen events
		if _, err := (&lock.Client{Service: s, Observe: seen.observe}).Acquire(ctx, "a/b"); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the service goes on waiting
		release(t, first)
		time.Sleep(time.Second)
		if seen.count(lock.Granted) != 0 || seen.count(lock.GivenUp) != 1 {
			t.Errorf("told of %v, want that it was granted to nobody, and given up", seen.kinds())
		}
		free(t, s)
	})
}

func TestAGrantWhoseAnswerWasLostIsReleasedAfterTheCancel(t *testing.T) {
	for name, faulty := range map[string]func(acquireFunc) acquireFunc{
		"the answer is on its way": func(do acquireFunc) acquireFunc { return slowly(0, 4*time.Second, do) },
		"the answer is lost":       unanswered[lease.AcquireRequest, lease.Lease],
		"the answer never comes": func(do acquireFunc) acquireFunc {
			return func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
				_, _ = do(ctx, q) // that is the answer
				return silence[lease.AcquireRequest, lease.Lease](ctx, q)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				began := time.Now()
				s.acquire = during(began, began.Add(time.Second), faulty(s.Service.Acquire),
					inTurn(refuse(lease.ErrUnavailable), refuse(lease.ErrOutcomeUnknown), s.Service.Acquire))
				ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
				defer cancel()
				started := time.Now()
				_, err := (&lock.Client{Service: s, TTL: time.Hour}).Acquire(ctx, "a/b")
				if !errors.Is(err, lock.ErrUndecided) || !errors.Is(err, context.DeadlineExceeded) || time.Since(started) > time.Second {
					t.Errorf("got %v after %v, want ErrUnavailable at the deadline", err, time.Since(started))
				}
				time.Sleep(20 * time.Second)
				free(t, s.Service)
			})
		})
	}
}

// What an earlier request id was granted is over, and is not what is to be
// released.
func TestWhatIsGivenBackIsTheLastGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		began := time.Now()
		s.acquire = during(began, began.Add(time.Second), inTurn(
			func(_ context.Context, q lease.AcquireRequest) (lease.Lease, error) {
				return lease.Lease{Name: q.Name, Token: 1, ID: lease.NewID(), TTL: q.TTL, Remaining: margin}, nil
			},
			refuse(lease.ErrRequestSpent),
			unanswered(s.Service.Acquire),
		), s.Service.Acquire)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := (&lock.Client{Service: s}).Acquire(ctx, "a/b"); !errors.Is(err, lock.ErrUndecided) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		free(t, s.Service)
	})
}

// The request in the background may be the first to arrive. If it kept the lock
// from others for as long as a grant that is wanted, nobody would do the job.
func TestWhatIsGivenBackKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = inTurn(refuse(lease.ErrOutcomeUnknown), s.Service.Acquire)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		c := &lock.Client{Service: s, TTL: time.Minute, MinHold: time.Minute, LockDelay: time.Minute}
		if _, err := c.Acquire(ctx, "a/b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := len(s.of("release")); n != 1 {
			t.Errorf("released %d times, want once", n)
		}
		free(t, s)
	})
}

func TestNothingIsAskedForInTheBackgroundWhenNothingWasGranted(t *testing.T) {
	for _, err := range []error{&lease.HeldError{Remaining: time.Minute}, lease.ErrThrottled, lease.ErrUnavailable, lease.ErrForbidden, lease.ErrRequestSpent} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.acquire = slowly(time.Second, 0, refuse(err))
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := (&lock.Client{Service: s}).Acquire(ctx, "a/b"); err == nil {
				t.Fatal("granted")
			}
			time.Sleep(2 * ttl)
			if n := len(s.of("acquire")); n != 1 {
				t.Errorf("%v: asked %d times, want once", err, n)
			}
		})
	}
}

func TestABackgroundReleaseGivesUpWhenTheLeaseHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = refuse(lease.ErrOutcomeUnknown)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := (&lock.Client{Service: s}).Acquire(ctx, "a/b"); err == nil {
			t.Fatal("granted")
		}
		time.Sleep(2 * ttl)
		asked := len(s.of("acquire"))
		time.Sleep(time.Hour)
		if n := len(s.of("acquire")) - asked; n != 0 {
			t.Errorf("asked another %d times", n)
		}
	})
}

// A candidate that was cancelled is not elected, however close it was.
func TestACancelThatComesWithTheGrantWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		ctx, cancel := context.WithCancel(t.Context())
		lock.StepWallClock(t, func() time.Duration {
			cancel() // the clock is read when there is an answer
			return 0
		})
		if _, err := (&lock.Client{Service: s}).Acquire(ctx, "a/b"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
		time.Sleep(time.Second)
		if acquired, released := len(s.of("acquire")), len(s.of("release")); acquired != 1 || released != 1 {
			t.Errorf("asked %d times, released %d times, want the known lease released", acquired, released)
		}
		free(t, s)
	})
}
