package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func TestALeaderStaysUntilItResigns(t *testing.T) {
	election(t, new(memlease.Store), func(r *terms, all map[string]*candidate) {
		pass(time.Hour)
		if r.changes != 1 {
			t.Errorf("%d terms in an hour, want one", r.changes)
		}
	})
}

func TestALeaderThatResignsHandsOverAtOnce(t *testing.T) {
	for range 20 {
		election(t, new(memlease.Store), func(r *terms, all map[string]*candidate) {
			for range 5 {
				before := r.leads
				all[before].resign <- nil
				pass(time.Second)
				if r.leads == before || r.leads == "" {
					t.Errorf("after %s it is %q that leads, want another within a second", before, r.leads)
				}
				pass(time.Minute)
			}
			if r.changes != 6 {
				t.Errorf("%d terms, want 6", r.changes)
			}
		})
	}
}

// Where the service does not wait, candidates look at long intervals, and a
// leader that resigned must not be there before them.
func TestALeaderThatResignsHandsOverToThoseThatOnlyLookNowAndThen(t *testing.T) {
	s := newStub()
	s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
		q.Wait = 0
		return s.Service.Acquire(ctx, q)
	}
	election(t, s, func(r *terms, all map[string]*candidate) {
		for range 50 {
			before := r.leads
			all[before].resign <- nil
			pass(time.Second)
			if r.leads == before || r.leads == "" {
				t.Errorf("after %s it is %q that leads, want another within a second", before, r.leads)
			}
			pass(time.Minute + time.Duration(len(r.leads))*77*time.Millisecond)
		}
	})
}

// forgetful is a service whose table is replaced by an empty one.
type forgetful struct {
	lease.Service
	mu sync.Mutex
}

func (f *forgetful) now() lease.Service {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Service
}

func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Service = new(memlease.Store)
}

func (f *forgetful) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	return f.now().Acquire(ctx, q)
}

func (f *forgetful) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	return f.now().Renew(ctx, q)
}

func (f *forgetful) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	return f.now().Release(ctx, q)
}

// Nothing can keep the old leader from leading until its next renewal. From then
// on there is one, and it stays.
func TestADeletedRowMeansOneChangeOfLeader(t *testing.T) {
	f := &forgetful{Service: new(memlease.Store)}
	election(t, f, func(r *terms, all map[string]*candidate) {
		old := all[r.leads]
		f.forget()
		// Candidates still wait at the table that is gone. The next who asks is
		// granted the lock, maybe before the old leader has noticed.
		r.allowTwo()
		pass(ttl)
		if len(old.lost) != 1 || !errors.Is(old.lost[0], lock.ErrLost) {
			t.Errorf("the old leader was told %v, want ErrLost once", old.lost)
		}
		changes := r.changes
		pass(10 * ttl)
		if changes != 2 || r.changes != changes {
			t.Errorf("%d terms, then %d, want one change and then peace", changes, r.changes)
		}
		if s, err := f.Get(t.Context(), lease.Name{Namespace: "a", Lock: "b"}); err != nil || !s.Held {
			t.Errorf("got %v, error %v: what the old leader released was not its own", s, err)
		}
	})
}

func TestALeaderThatIsDeposedIsToldAfterItHasStopped(t *testing.T) {
	m := new(memlease.Store)
	election(t, m, func(r *terms, all map[string]*candidate) {
		for range 10 {
			old := all[r.leads]
			before := len(old.lost)
			breakLock(t, m, lease.Name{Namespace: "a", Lock: "b"})
			r.allowTwo()
			pass(time.Minute)
			if len(old.lost) != before+1 || !errors.Is(old.lost[before], lock.ErrLost) {
				t.Errorf("told %v, want another ErrLost", old.lost)
			}
			if r.leads == "" {
				t.Error("nobody leads")
			}
		}
	})
}

func TestNoTwoLeadThroughAnOutage(t *testing.T) {
	s := newStub()
	var silent atomic.Bool
	s.renew = func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
		if silent.Load() {
			return silence[lease.RenewRequest, lease.Lease](ctx, q)
		}
		return s.Service.Renew(ctx, q)
	}
	election(t, s, func(r *terms, all map[string]*candidate) {
		first := all[r.leads]
		silent.Store(true)
		pass(3 * ttl)
		silent.Store(false)
		pass(ttl)
		if len(first.lost) == 0 || !errors.Is(first.lost[0], lock.ErrUnconfirmed) || r.changes < 2 {
			t.Errorf("told %v, %d terms, want a loss and another leader", first.lost, r.changes)
		}
	})
}

func TestACandidateThatIsCancelledBeforeItWinsHearsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		h := acquire(t, &lock.Client{Service: m}, "a/b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		e := lock.Election{
			Client:    &lock.Client{Service: m},
			Lock:      "a/b",
			OnElected: func(context.Context, fence.Token) error { t.Error("elected"); return nil },
			OnLost:    func(fence.Token, error) { t.Error("lost") },
		}
		if err := e.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		release(t, h)
		time.Sleep(time.Minute)
		free(t, m)
	})
}

func TestAnErrorOfTheLeaderEndsItsCandidacy(t *testing.T) {
	m := new(memlease.Store)
	e := lock.Election{
		Client:    &lock.Client{Service: m},
		Lock:      "a/b",
		OnElected: func(context.Context, fence.Token) error { return errWork },
		OnLost:    func(fence.Token, error) { t.Error("lost") },
	}
	if err := e.Run(t.Context()); err != errWork {
		t.Errorf("got %v, want %v", err, errWork)
	}
	free(t, m)
}

// The context ends first, and whoever looks then finds out why.
func TestALeaderThatStopsAsSoonAsItIsToldIsNotTakenToHaveResigned(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.renew = failing[lease.RenewRequest, lease.Lease](lease.ErrLost)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := lock.Election{
				Client: &lock.Client{Service: s},
				Lock:   "a/b",
				OnElected: func(ctx context.Context, _ fence.Token) error {
					<-ctx.Done()
					return ctx.Err()
				},
				OnLost: func(fence.Token, error) { cancel() },
			}
			if err := e.Run(ctx); err != context.Canceled || ctx.Err() == nil {
				t.Errorf("got %v, want that OnLost was called", err)
				cancel()
			}
		})
	}
}

func TestAnEndedContextEndsTheTermAndIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		e := lock.Election{
			Client: &lock.Client{Service: m},
			Lock:   "a/b",
			OnElected: func(ctx context.Context, _ fence.Token) error {
				<-ctx.Done()
				return nil
			},
			OnLost: func(fence.Token, error) { t.Error("lost") },
		}
		if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
		free(t, m)
	})
}
