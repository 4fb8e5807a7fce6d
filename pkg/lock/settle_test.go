package lock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// Whoever gives up in an outage leaves little behind, and nothing that asks for
// the lock again.
func TestAThousandAbandonedCallsInAnOutageCostAFewRequests(t *testing.T) {
	for name, fault := range map[string]acquireFunc{
		"silence":       silence[lease.AcquireRequest, lease.Lease],
		"lost answers":  nil,
		"lost requests": refuse(lease.ErrOutcomeUnknown),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				over := time.Now().Add(5 * time.Minute)
				if fault == nil {
					fault = unanswered(s.Service.Acquire)
				}
				s.acquire = during(time.Now(), over, fault, s.Service.Acquire)
				s.release = during(time.Now(), over, silence[lease.ReleaseRequest, lease.State], s.Service.Release)
				c := &lock.Client{Service: s, TTL: time.Hour}
				before := runtime.NumGoroutine()
				var calls sync.WaitGroup
				for range 1000 {
					calls.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
						defer cancel()
						if _, err := c.TryAcquire(ctx, "a/b"); !errors.Is(err, lock.ErrUndecided) {
							t.Errorf("got %v, want ErrUndecided", err)
						}
					})
				}
				calls.Wait()
				synctest.Wait()
				goroutines, asked := runtime.NumGoroutine()-before, len(s.of("acquire"))
				time.Sleep(time.Until(over))
				again, releases := len(s.of("acquire"))-asked, len(s.of("release"))
				t.Logf("%d requests for 1,000 calls; afterwards %d goroutines, and %d releases in 5 minutes", asked, goroutines, releases)
				if goroutines > 2 || again != 0 || releases > 200 {
					t.Errorf("%d goroutines, asked %d times again, %d releases, want one goroutine, none, and a few", goroutines, again, releases)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := c.Settle(ctx); err != nil {
					t.Error(err)
				}
				free(t, s.Service)
			})
		})
	}
}

// The request comes late: after its caller has given up, and the service was told.
func TestARequestThatWasGivenUpIsGrantedNothingAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			time.AfterFunc(time.Minute, func() { _, _ = s.Service.Acquire(context.Background(), q) }) // nobody hears the answer
			return silence[lease.AcquireRequest, lease.Lease](ctx, q)
		}
		c := &lock.Client{Service: s, TTL: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := c.Acquire(ctx, "a/b"); !errors.Is(err, lock.ErrUndecided) {
			t.Fatal(err)
		}
		if err := c.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		free(t, s.Service)
	})
}

// The service remembers ten of a lock. What the others get before they can no longer
// arrive is ended then.
func TestMoreRequestsAreGivenUpThanTheServiceRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			time.AfterFunc(50*time.Second, func() { _, _ = s.Service.Acquire(context.Background(), q) }) // nobody hears the answer
			return silence[lease.AcquireRequest, lease.Lease](ctx, q)
		}
		c := &lock.Client{Service: s, TTL: time.Hour}
		var calls sync.WaitGroup
		for range 30 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, _ = c.TryAcquire(ctx, "a/b")
			})
		}
		calls.Wait()
		start := time.Now()
		if err := c.Settle(t.Context()); err != nil || time.Since(start) > lease.WithdrawnFor+time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if n := len(s.of("release")); n > 60 {
			t.Errorf("%d releases for 30 requests", n)
		}
		free(t, s.Service)
	})
}

// As at each rolling deploy: the service does not learn that its callers have
// gone, and goes on with their waits.
func TestCandidatesThatLeaveAreNotElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			type answer struct {
				lease.Lease
				error
			}
			answered := make(chan answer, 1)
			go func() {
				l, err := s.Service.Acquire(context.WithoutCancel(ctx), q)
				answered <- answer{l, err}
			}()
			select {
			case a := <-answered:
				return a.Lease, a.error
			case <-ctx.Done():
				return lease.Lease{}, lease.ErrOutcomeUnknown
			}
		}
		leader := acquire(t, &lock.Client{Service: s}, "a/b")
		ctx, shutdown := context.WithCancel(t.Context())
		var candidates sync.WaitGroup
		for range 10 {
			candidates.Go(func() {
				e := lock.Election{Client: &lock.Client{Service: s}, Lock: "a/b", OnElected: func(context.Context, fence.Token) error {
					t.Error("elected")
					return nil
				}}
				if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want the end of the context", err)
				}
			})
		}
		time.Sleep(7 * time.Second)
		left := time.Now()
		shutdown()
		candidates.Wait()
		if took := time.Since(left); took > time.Second {
			t.Errorf("they left after %v", took)
		}
		release(t, leader) // and all processes have ended
		released := time.Now()
		next := acquire(t, &lock.Client{Service: s}, "a/b")
		if took := time.Since(released); took > time.Second || next.Abandoned() != nil {
			t.Errorf("the next leads after %v, and is told of %v, want it within 1 s", took, next.Abandoned())
		}
		release(t, next)
		time.Sleep(30 * time.Second) // the service's waits end too
	})
}

func TestSettleWaitsForNothingWhenThereIsNothing(t *testing.T) {
	c := &lock.Client{Service: newStub()}
	if err := c.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = silence
		s.release = failing[lease.ReleaseRequest, lease.State](lease.ErrUnavailable)
		c := &lock.Client{Service: s}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = c.Acquire(ctx, "a/b") // it is not granted
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context: the service cannot be told", err)
		}
		time.Sleep(time.Minute)
		if err := c.Settle(t.Context()); err != nil {
			t.Errorf("got %v, want that it is over when what was granted has run out", err)
		}
	})
}

// abandon gives up a request for the lock that is granted in silence.
func abandon(t *testing.T, c *lock.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.TryAcquire(ctx, name); !errors.Is(err, lock.ErrUndecided) {
		t.Fatalf("got %v, want ErrUndecided", err)
	}
}

func TestSettleWaitsOnlyForWhatWasGivenUpBeforeItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = unanswered(s.Service.Acquire)
		s.release = func(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
			time.Sleep(100 * time.Millisecond) // as long as it takes until the next is given up
			return s.Service.Release(ctx, q)
		}
		c := &lock.Client{Service: s}
		abandon(t, c, "a/first")
		ctx, stop := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		busy.Go(func() {
			for ctx.Err() == nil {
				abandon(t, c, "a/"+lease.NewID())
				time.Sleep(30 * time.Millisecond)
			}
		})
		time.Sleep(time.Second)
		ending, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := c.Settle(ending); err != nil {
			t.Errorf("got %v in a process that goes on giving up requests", err)
		}
		stop()
		busy.Wait()
		_ = c.Settle(t.Context())
	})
}

func TestSettleOutlivesAServiceAndAnObserverThatEndTheirGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = unanswered(s.Service.Acquire)
		s.release = during(time.Now(), time.Now().Add(5*time.Second), func(context.Context, lease.ReleaseRequest) (lease.State, error) {
			runtime.Goexit()
			panic("not reached")
		}, s.Service.Release)
		var told int // by one goroutine at a time
		c := &lock.Client{Service: s, TTL: time.Minute, Observe: func(_ context.Context, e lock.Event) {
			if e.Kind == lock.GivenUp {
				told++
				runtime.Goexit()
			}
		}}
		abandon(t, c, "a/b")
		abandon(t, c, "a/c")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := c.Settle(ctx); err != nil || told != 2 {
			t.Errorf("got %v, and the observer was told of %d, want nil and 2", err, told)
		}
		free(t, s.Service)
	})
}

func TestAnObserverThatBlocksKeepsNothingFromBeingSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = unanswered(s.Service.Acquire)
		unblock := make(chan struct{})
		c := &lock.Client{Service: s, TTL: time.Hour, Observe: func(_ context.Context, e lock.Event) {
			if e.Kind == lock.GivenUp {
				<-unblock
			}
		}}
		for range 10 {
			abandon(t, c, "a/b")
		}
		synctest.Wait()
		if n := len(s.of("release")); n != 10 {
			t.Errorf("%d releases while the observer blocks, want 10", n)
		}
		close(unblock)
		if err := c.Settle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestARenewalWhoseServiceEndsItsGoroutineIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = during(time.Now(), time.Now().Add(7*time.Second), func(context.Context, lease.RenewRequest) (lease.Lease, error) {
			runtime.Goexit()
			panic("not reached")
		}, s.Service.Renew)
		held := acquire(t, &lock.Client{Service: s, TTL: 15 * time.Second}, "a/b")
		time.Sleep(time.Minute)
		if err := held.Err(); err != nil {
			t.Errorf("lost after a renewal that did not return: %v", err)
		}
		release(t, held)
	})
}
