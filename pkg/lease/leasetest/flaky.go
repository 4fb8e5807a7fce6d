package leasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// Flaky is a service behind a bad network. What it does with a call is drawn
// at random from its seed, so a run of one goroutine can be repeated.
type Flaky struct {
	Service lease.Service
	Seed    uint64

	// Probabilities, 0 to 1.
	DropRequest float64 // the call never arrives
	DropAnswer  float64 // the call arrives, the answer is lost
	Duplicate   float64 // the call arrives a second time, before some later call

	// Delay is the longest delay of a call.
	Delay time.Duration

	mu   sync.Mutex
	rand *rand.Rand
	late []func()
}

var _ lease.Service = (*Flaky)(nil)

// Acquire implements [lease.Service].
func (f *Flaky) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	return through(ctx, f, q, f.Service.Acquire)
}

// Renew implements [lease.Service].
func (f *Flaky) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	return through(ctx, f, q, f.Service.Renew)
}

// Release implements [lease.Service].
func (f *Flaky) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	return through(ctx, f, q, f.Service.Release)
}

// Break implements [lease.Service].
func (f *Flaky) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	return through(ctx, f, q, f.Service.Break)
}

// Get implements [lease.Service].
func (f *Flaky) Get(ctx context.Context, n lease.Name) (lease.State, error) {
	return through(ctx, f, n, f.Service.Get)
}

func through[Q, A any](ctx context.Context, f *Flaky, q Q, call func(context.Context, Q) (A, error)) (A, error) {
	var none A
	before, drop, lose, delay := f.draw(func() {
		_, _ = call(context.WithoutCancel(ctx), q) // nobody waits for the answer to a duplicate
	})
	if before != nil {
		before()
	}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	if drop {
		return none, fmt.Errorf("%w: flaky: the request was dropped", lease.ErrOutcomeUnknown)
	}
	a, err := call(ctx, q)
	if lose {
		return none, fmt.Errorf("%w: flaky: the answer was dropped", lease.ErrOutcomeUnknown)
	}
	return a, err
}

// draw decides the fate of a call and takes, as before, a duplicate of an
// earlier one that arrives only now.
func (f *Flaky) draw(again func()) (before func(), drop, lose bool, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rand == nil {
		f.rand = rand.New(rand.NewPCG(f.Seed, 0))
	}
	if len(f.late) > 0 && f.rand.IntN(4) == 0 {
		i := f.rand.IntN(len(f.late))
		before = f.late[i]
		f.late = append(f.late[:i], f.late[i+1:]...)
	}
	if f.rand.Float64() < f.Duplicate {
		f.late = append(f.late, again)
	}
	if f.Delay > 0 {
		delay = time.Duration(f.rand.Int64N(int64(f.Delay)))
	}
	return before, f.rand.Float64() < f.DropRequest, f.rand.Float64() < f.DropAnswer, delay
}
