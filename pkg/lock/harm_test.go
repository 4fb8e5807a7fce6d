package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// A panic in a goroutine that nobody has started ends the process.
func TestAPanicOfTheServiceIsTheCallers(t *testing.T) {
	s := newStub()
	s.acquire = func(context.Context, lease.AcquireRequest) (lease.Lease, error) { panic("a bug") }
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "a bug") {
			t.Errorf("recovered %q", got)
		}
	}()
	_, err := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b")
	t.Errorf("got %v", err)
}

func TestAPanicOfTheServiceInTheBackgroundIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		bug := func(context.Context, lease.RenewRequest) (lease.Lease, error) { panic("a bug") }
		s.renew = inTurn(bug, bug, s.Service.Renew)
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		time.Sleep(5 * ttl)
		if err := h.Err(); err != nil || seen.count(lock.Unrenewed) != 2 {
			t.Errorf("got %v, told of %v, want it held after two failures", err, seen.kinds())
		}
		release(t, h)
	})
}

// logged returns what is logged by default while f runs.
func logged(f func()) string {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	f()
	return out.String()
}

func TestAnObserverThatPanicsHarmsNobody(t *testing.T) {
	out := logged(func() {
		synctest.Test(t, func(t *testing.T) {
			c := &lock.Client{Service: newStub(), Observe: func(context.Context, lock.Event) { panic("a bug") }}
			h := acquire(t, c, "a/b")
			time.Sleep(5 * ttl)
			if err := h.Err(); err != nil {
				t.Error(err)
			}
			release(t, h)
		})
	})
	if !strings.Contains(out, "Observe panicked") || !strings.Contains(out, "a bug") {
		t.Errorf("logged %q", out)
	}
}

func TestAnObserverThatIsSlowLosesNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		fail := failing[lease.RenewRequest, lease.Lease](lease.ErrUnavailable)
		s.renew = inTurn(s.Service.Renew, fail, s.Service.Renew, fail, s.Service.Renew)
		c := &lock.Client{Service: s, Observe: func(_ context.Context, e lock.Event) {
			if e.Kind != lock.Released {
				time.Sleep(2 * ttl)
			}
		}}
		h := acquire(t, c, "a/b")
		if err := h.Err(); err != nil {
			t.Errorf("lost before it was returned: %v", err)
		}
		time.Sleep(10 * ttl)
		if err := h.Err(); err != nil {
			t.Error(err)
		}
		release(t, h)
		time.Sleep(2 * ttl)
	})
}

// The observer of one lock that is lost is called while others are to be looked at.
func TestAnObserverThatIsSlowHidesNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = silence
		c := &lock.Client{Service: s, Observe: func(_ context.Context, e lock.Event) {
			if e.Kind == lock.Lost {
				time.Sleep(time.Hour)
			}
		}}
		for i := range 10 {
			h := acquire(t, c, fmt.Sprint("a/", i))
			time.AfterFunc(time.Until(h.Deadline()), func() {
				synctest.Wait()
				if h.Context().Err() == nil {
					t.Error("the work goes on after its deadline")
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestWorkThatAsksForItsOwnLockIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lock.Client{Service: newStub()}
		other := &lock.Client{Service: newStub()}
		nothing := func(context.Context, fence.Token) error { return nil }
		var kept context.Context
		err := c.Do(t.Context(), "a/b", func(ctx context.Context, _ fence.Token) error {
			kept = ctx
			return c.Do(ctx, "a/c", func(ctx context.Context, _ fence.Token) error {
				if err := c.Do(ctx, "a/b", nothing); !errors.Is(err, lease.ErrInvalid) || !contains(err, "a/b is held already") {
					t.Errorf("got %v, want a clear error", err)
				}
				if err := other.Do(ctx, "a/b", nothing); err != nil {
					t.Errorf("of another service: %v", err)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		h, err := c.Acquire(context.WithoutCancel(kept), "a/b")
		if err != nil {
			t.Fatalf("after the work: %v", err)
		}
		release(t, h)
	})
}

func TestAReleaseKeepsWithinALiveDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.release = silence
		s.renew = slowly(ttl, 0, s.Service.Renew)
		for _, c := range []struct{ deadline, want time.Duration }{{500 * time.Millisecond, 500 * time.Millisecond}, {-time.Second, 5 * time.Second}, {time.Hour, 5 * time.Second}} {
			h := acquire(t, &lock.Client{Service: s}, "a/"+c.deadline.String())
			time.Sleep(ttl / 3)
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			started := time.Now()
			err := h.Release(ctx)
			if took := time.Since(started); err == nil || took > c.want || took < c.want/2 {
				t.Errorf("deadline %v: got %v after %v, want a failure within %v", c.deadline, err, took, c.want)
			}
			cancel()
		}
		time.Sleep(time.Minute)
	})
}

// A mutex that is held during a request keeps the time of a bubble from passing.
func TestReleasesAtTheSameTimeDoNotStopTheClockOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.release = slowly(time.Second, 0, s.Service.Release)
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { release(t, h) })
		}
		all.Wait()
	})
}

func TestAServiceThatCannotBeReachedIsLoggedByDefault(t *testing.T) {
	out := logged(func() {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.acquire = refuse(fmt.Errorf("%w: dial tcp 127.0.0.1:1: connection refused", lease.ErrUnavailable))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_ = (&lock.Client{Service: s}).Do(ctx, "a/b", func(context.Context, fence.Token) error { return nil }) // it is not granted
		})
	})
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, "connection refused") || !strings.Contains(out, "lock=a/b") {
		t.Errorf("logged %q, want one line that says what is wrong", out)
	}
	out = logged(func() {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			h := acquire(t, &lock.Client{Service: s}, "a/b")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _ = (&lock.Client{Service: s}).Acquire(ctx, "a/b") // it is held
			release(t, h)
		})
	})
	if out != "" {
		t.Errorf("logged %q of a lock that is held", out)
	}
}

func TestWhatADeposedLeaderFailedWithIsTold(t *testing.T) {
	for name, told := range map[string]bool{"OnLost": true, "Observe": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				s.renew = failing[lease.RenewRequest, lease.Lease](lease.ErrLost)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var got error
				var seen events
				e := lock.Election{
					Client: &lock.Client{Service: s, Observe: seen.observe},
					Lock:   "a/b",
					OnElected: func(ctx context.Context, _ fence.Token) error {
						<-ctx.Done()
						time.AfterFunc(time.Second, cancel)
						return errWork
					},
				}
				if told {
					e.OnLost = func(_ fence.Token, err error) { got = err }
				}
				if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				for _, event := range seen.all {
					if event.Kind == lock.Failed {
						got = errors.Join(lock.ErrNotHeld, event.Err)
					}
				}
				if !errors.Is(got, errWork) || !errors.Is(got, lock.ErrNotHeld) {
					t.Errorf("told %v, want %v", got, errWork)
				}
			})
		})
	}
}

func TestTheLossSaysWhyTheLastRenewalFailed(t *testing.T) {
	for _, why := range []error{&lease.RetryError{Err: lease.ErrThrottled, After: time.Second}, &lease.ForbiddenError{Reason: "expired"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.renew = failing[lease.RenewRequest, lease.Lease](why)
			h := acquire(t, &lock.Client{Service: s}, "a/b")
			<-h.Lost()
			if err := h.Err(); !errors.Is(err, lock.ErrUnconfirmed) || !errors.Is(err, why) || context.Cause(h.Context()) != err {
				t.Errorf("got %v, want ErrUnconfirmed because of %v", err, why)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = silence
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		<-h.Lost()
		if err := h.Err(); errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lease.ErrOutcomeUnknown) {
			t.Errorf("got %v, which is taken for the caller's own deadline", err)
		}
	})
}

func TestSoakAHundredThousandIdleLocksCostNoGoroutines(t *testing.T) {
	n := 100_000
	if rigor.Rounds(t) == 1 {
		n /= 10 // make soak does it all
	}
	synctest.Test(t, func(t *testing.T) {
		c := &lock.Client{Service: new(memlease.Store), TTL: time.Hour}
		before := runtime.NumGoroutine()
		held := make([]*lock.Held, n)
		for i := range held {
			held[i] = acquire(t, c, fmt.Sprint("a/", i))
		}
		most := 0
		for range 40 {
			time.Sleep(time.Second / 2)
			synctest.Wait() // a timer that goes off has a goroutine for a moment
			most = max(most, runtime.NumGoroutine()-before)
		}
		if most > 10 {
			t.Errorf("%d goroutines for %d locks at rest", most, n)
		}
		time.Sleep(25 * time.Minute)
		for _, h := range held {
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			release(t, h)
		}
	})
}
