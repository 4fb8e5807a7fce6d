package guardtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A promise is one case of the suite. It uses resources of its own.
type promise struct {
	name  string
	check func(*trial)
	apart bool // it takes a guard with tables of its own
}

var promises = [][]promise{tokens, endings, locks, names, mishaps, repairs}

// Run checks every case, each as a test of its own, on a store that it gets
// from store. The cases run in parallel.
func Run(t *testing.T, store func(*testing.T) Store) { runAll(t, store, true) }

// RunInside is Run for a guard that keeps all that it knows inside of the caller's
// own row, and so knows one lock and no time: without the cases about several
// locks and about forgetting.
func RunInside(t *testing.T, store func(*testing.T) Store) { runAll(t, store, false) }

func runAll(t *testing.T, store func(*testing.T) Store, apart bool) {
	for _, p := range slices.Concat(promises...) {
		if p.apart && !apart {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if err := p.run(t.Context(), store(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// run returns what was wrong first.
func (p promise) run(ctx context.Context, s Store) error {
	x := &trial{ctx: ctx, store: s}
	x.fresh()
	if x.err == nil {
		p.check(x)
	}
	return x.err
}

// lockA is the lock of cases that are about one lock only.
const (
	lockA = "suite/orders/42"
	lockB = "suite/carts/42"
	lockC = "suite/orders"
)

// A trial is a conversation with one resource. After the first surprise it says
// nothing more.
type trial struct {
	ctx   context.Context
	store Store
	r     Resource
	err   error
}

func (x *trial) failf(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// fresh goes on with a resource that nobody has written to.
func (x *trial) fresh(locks ...string) {
	if x.err != nil {
		return
	}
	r, err := x.store.New(x.ctx, locks...)
	if err != nil {
		x.failf("new resource: %w", err)
		return
	}
	x.r = r
}

// restart goes on as a process that has just started.
func (x *trial) restart(locks ...string) {
	if x.err != nil {
		return
	}
	r, err := x.store.Reopen(x.ctx, x.r, locks...)
	if err != nil {
		x.failf("reopen: %w", err)
		return
	}
	x.r = r
}

// A call is one of the ways to change a resource.
type call struct {
	name string
	do   func(r Resource, ctx context.Context, h fence.Holding) error
}

var (
	claim  = call{"claim", Resource.Claim}
	remove = call{"delete", Resource.Delete}
	any3   = []call{write("written in vain"), claim, remove}
)

func write(text string) call {
	return call{"write", func(r Resource, ctx context.Context, h fence.Holding) error { return r.Write(ctx, h, text) }}
}

// holding is that of one lock.
func holding(lock string, token fence.Token) fence.Holding {
	return fence.Holding{Lock: lock, Token: token}
}

// accept makes a call that must succeed.
func (x *trial) accept(c call, lock string, token fence.Token) {
	if x.err != nil {
		return
	}
	if err := c.do(x.r, x.ctx, holding(lock, token)); err != nil {
		x.failf("%s with %d of %q: got error %w, want it accepted", c.name, token, lock, err)
	}
}

// write is the accepted write of a text.
func (x *trial) write(lock string, token fence.Token, text string) {
	x.accept(write(text), lock, token)
}

// stale makes a call that must be refused because token seen is known.
func (x *trial) stale(c call, lock string, token, seen fence.Token) {
	if x.err != nil {
		return
	}
	err := c.do(x.r, x.ctx, holding(lock, token))
	var e *fence.StaleError
	switch {
	case !errors.As(err, &e) || !errors.Is(err, fence.ErrStale):
		x.failf("%s with %d after %d of %q: got error %v, want a StaleError", c.name, token, seen, lock, err)
	case e.Lock != lock || e.Token != token || e.Seen != seen:
		x.failf("%s with %d after %d of %q: the StaleError says %+v", c.name, token, seen, lock, *e)
	case e.Resource == "":
		x.failf("%s: the StaleError names no resource", c.name)
	}
}

// other makes a call that must be refused because lock is not that of the
// resource.
func (x *trial) other(c call, lock string, token fence.Token, bound string) {
	if x.err != nil {
		return
	}
	err := c.do(x.r, x.ctx, holding(lock, token))
	var e *fence.OtherLockError
	switch {
	case !errors.As(err, &e) || !errors.Is(err, fence.ErrOtherLock):
		x.failf("%s with %d of %q: got error %v, want an OtherLockError", c.name, token, lock, err)
	case e.Lock != lock || e.Bound == "" || bound != "" && e.Bound != bound || e.Resource == "":
		x.failf("%s with %d of %q: the OtherLockError says %+v, want it bound to %q", c.name, token, lock, *e, bound)
	}
}

// invalid makes a call that nobody's token or lock can be behind.
func (x *trial) invalid(c call, lock string, token fence.Token) {
	if x.err != nil {
		return
	}
	if err := c.do(x.r, x.ctx, holding(lock, token)); !errors.Is(err, fence.ErrInvalid) {
		x.failf("%s with %d of %q: got error %v, want ErrInvalid", c.name, token, lock, err)
	}
}

func (x *trial) holds(text string) {
	if x.err != nil {
		return
	}
	if got, found, err := x.r.Read(x.ctx); err != nil || !found || got != text {
		x.failf("read %.60q, found %t, error %v, want %.60q", got, found, err, text)
	}
}

func (x *trial) isEmpty() {
	if x.err != nil {
		return
	}
	if got, found, err := x.r.Read(x.ctx); err != nil || found {
		x.failf("read %.60q, found %t, error %v, want nothing", got, found, err)
	}
}
