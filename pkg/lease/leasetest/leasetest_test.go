package leasetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

func TestAFlakyServiceKeepsTheLockSafe(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			h := Hammer{
				Service: &Flaky{Service: new(memlease.Store), Seed: seed, DropRequest: .1, DropAnswer: .1, Duplicate: .1, Delay: 50 * time.Millisecond},
				Name:    lease.Name{Namespace: "hammer", Lock: "lock"},
				Callers: 16, TTL: 2 * time.Second, Wait: time.Second, Abandon: .1,
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			history := h.Run(ctx)
			if err := history.Check(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			t.Logf("seed %d: %d operations", seed, len(history.Ops()))
		})
	}
}

func TestAFlakyServiceIsLinearizable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Hammer{
			Service: &Flaky{Service: new(memlease.Store), Seed: 1, DropRequest: .2, DropAnswer: .2, Delay: 20 * time.Millisecond},
			Name:    lease.Name{Namespace: "hammer", Lock: "lock"},
			Callers: 5, TTL: time.Hour, Wait: 100 * time.Millisecond,
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		history := h.Run(ctx)
		if n := len(history.Ops()); n < 50 {
			t.Errorf("only %d operations", n)
		}
		if err := history.Linearizable(time.Minute); err != nil {
			t.Error(err)
		}
	})
}

func TestAHistoryTellsWhatMustNeverHappen(t *testing.T) {
	t.Setenv("ARTIFACTS", t.TempDir())
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	op := func(kind Kind, token fence.Token, called, acquired, expires int, err error) Op {
		return Op{Kind: kind, Called: at(called), Ended: at(called + 1), Err: err,
			Lease: lease.Lease{Token: token, AcquiredAt: at(acquired), ExpiresAt: at(expires)}}
	}
	for _, c := range []struct {
		name, want   string
		ops          []Op
		linearizable bool
	}{
		{"a release and a grant", "", []Op{op(Acquire, 1, 0, 0, 60, nil), op(Release, 1, 10, 0, 60, nil), op(Acquire, 2, 12, 12, 72, nil)}, true},
		{"an expiry and a grant", "", []Op{op(Acquire, 1, 0, 0, 60, nil), op(Acquire, 2, 61, 61, 121, nil)}, false},
		{"one token twice", "was granted to caller", []Op{op(Acquire, 1, 0, 0, 60, nil), op(Release, 1, 5, 0, 60, nil), op(Acquire, 1, 61, 61, 90, nil)}, false},
		{"a smaller token", "after token 2 had been", []Op{op(Acquire, 2, 0, 0, 60, nil), op(Release, 2, 5, 0, 60, nil), op(Acquire, 1, 61, 61, 90, nil)}, false},
		{"two leases at once", "while token 1 was held", []Op{op(Acquire, 1, 0, 0, 60, nil), op(Acquire, 2, 30, 30, 90, nil)}, false},
		{"two leases at once after a renewal", "while token 1 was held", []Op{op(Acquire, 1, 0, 0, 60, nil), op(Renew, 1, 30, 0, 90, nil), op(Acquire, 2, 61, 61, 121, nil)}, false},
		{"a lease renewed after the next grant", "was renewed after", []Op{op(Acquire, 1, 0, 0, 60, nil), op(Release, 1, 5, 0, 60, nil), op(Acquire, 2, 61, 61, 121, nil), op(Renew, 1, 70, 0, 60, nil)}, false},
		{"a lease lost for no reason", "before it expired", []Op{op(Acquire, 1, 0, 0, 60, nil), op(Renew, 1, 30, 0, 60, lease.ErrLost)}, false},
		{"a refusal while free", "", []Op{op(Acquire, 0, 0, 0, 0, lease.ErrHeld)}, false},
	} {
		var h History
		for _, op := range c.ops {
			h.Add(op)
		}
		err := h.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if err := h.Linearizable(time.Minute); (err == nil) != c.linearizable {
			t.Errorf("%s: linearizable: got %v, want %v", c.name, err, c.linearizable)
		}
	}
}

// A service that grants whatever it is asked for must not pass.
func TestAHammerFindsAServiceThatGrantsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Hammer{Service: &Flaky{Service: generous{new(memlease.Store)}, Delay: 20 * time.Millisecond}, Name: lease.Name{Namespace: "a", Lock: "b"}, Callers: 4, TTL: time.Minute, Wait: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		history := h.Run(ctx)
		if err := history.Check(); err == nil {
			t.Error("the check found nothing")
		}
	})
}

type generous struct{ lease.Service }

// Acquire breaks what holds the lock.
func (g generous) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	l, err := g.Service.Acquire(ctx, q)
	if held := (*lease.HeldError)(nil); errors.As(err, &held) {
		_, _ = g.Break(ctx, lease.BreakRequest{Name: q.Name, Token: held.Token, Reason: "greed"})
		return g.Service.Acquire(ctx, q)
	}
	return l, err
}
