package dynamolease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// hosts are stores on one table whose clocks are off. Every call goes to any.
type hosts struct {
	stores  []lease.Service
	granted atomic.Int64
	enough  int64
	stop    context.CancelFunc // called when enough was granted
}

func (h *hosts) any() lease.Service { return h.stores[rand.IntN(len(h.stores))] }

func (h *hosts) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	l, err := h.any().Acquire(ctx, q)
	if err == nil && h.granted.Add(1) == h.enough {
		h.stop()
	}
	return l, err
}

func (h *hosts) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	return h.any().Renew(ctx, q)
}

func (h *hosts) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	return h.any().Release(ctx, q)
}

func (h *hosts) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	return h.any().Break(ctx, q)
}

func (h *hosts) Get(ctx context.Context, n lease.Name) (lease.State, error) {
	return h.any().Get(ctx, n)
}

// It is not parallel: so many callers would slow other tests down.
func TestTwoHundredCallersOfHostsWhoseClocksAreOffShareALock(t *testing.T) {
	const skew = 500 * time.Millisecond // to either side: together no more than the rules allow
	x := newTable(t)
	h := &hosts{enough: int64(20 * rigor.Rounds(t))}
	for _, off := range []time.Duration{-skew, -skew / 3, 0, skew / 2, skew} {
		s := x.store(nil, protocol.Rules{})
		s.Now = func() time.Time { return time.Now().Add(off) }
		h.stores = append(h.stores, s)
	}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(t.Context())
	defer h.stop()
	history := leasetest.Hammer{
		Service: h, Name: lease.Name{Namespace: "callers", Lock: "lock"},
		Callers: 200, TTL: 2 * time.Second, Wait: 3 * time.Second, Abandon: .05,
	}.Run(ctx)

	var checked leasetest.History
	for _, op := range history.Ops() {
		switch {
		case errors.Is(op.Err, lease.ErrExpired):
			// By a fast clock a lease runs out that much earlier.
			op.Ended = op.Ended.Add(2 * skew)
		case op.Err != nil && !errors.Is(op.Err, lease.ErrHeld) && !errors.Is(op.Err, lease.ErrUnavailable) && !errors.Is(op.Err, lease.ErrLost):
			t.Errorf("%s: %v", op.Kind, op.Err)
		}
		checked.Add(op)
	}
	if err := checked.Check(); err != nil {
		t.Error(err)
	}
	t.Logf("%d grants, %d operations", h.granted.Load(), len(history.Ops()))
}
