package leasetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// Kind says what an [Op] is.
type Kind string

// The kinds of operations.
const (
	Acquire Kind = "acquire"
	Renew   Kind = "renew"
	Release Kind = "release"
)

// An Op is one call to a service, from the moment it was made to the moment its
// outcome was known. It may cover several tries.
type Op struct {
	Kind          Kind
	Caller        int
	Called, Ended time.Time
	Lease         lease.Lease // what was granted or renewed, or what was to be
	Err           error
	_             struct{}
}

// A History is everything that was done with one lock. It is safe for
// concurrent use.
type History struct {
	mu  sync.Mutex
	ops []Op
}

// Add records an operation that has ended.
func (h *History) Add(op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
}

// Ops returns what was recorded, in the order in which it was called.
func (h *History) Ops() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := slices.Clone(h.ops)
	slices.SortStableFunc(ops, func(a, b Op) int { return a.Called.Compare(b.Called) })
	return ops
}

// A term is the life of one grant, put together from its operations.
type term struct {
	acquire  Op
	expires  time.Time // the latest expiry that was told
	renewed  time.Time // when the last successful renewal was called
	released time.Time // when its release was first called, or zero
}

// Check looks for what must never happen to a lock, in time O(n log n), and
// returns the first case:
//
//   - two grants with one token, or a grant with a smaller token than one that
//     had been answered before it was asked for;
//   - a grant before the lease with the next smaller token was released or had
//     expired, so that two leases live at one instant of the store's order,
//     which is that of the tokens;
//   - a renewal, called after the next grant was known, that succeeds;
//   - a lease that is lost before it expired, without having been released.
//
// A release whose outcome is unknown may have taken effect. Histories with a
// break in them are not for Check.
func (h *History) Check() error {
	ops := h.Ops()
	terms := make(map[fence.Token]*term)
	var order []*term
	for _, op := range ops {
		if op.Kind != Acquire || op.Err != nil {
			continue
		}
		if t := terms[op.Lease.Token]; t != nil {
			return fmt.Errorf("token %d was granted to caller %d and to caller %d", op.Lease.Token, t.acquire.Caller, op.Caller)
		}
		t := &term{acquire: op, expires: op.Lease.ExpiresAt}
		terms[op.Lease.Token] = t
		order = append(order, t)
	}
	if err := ordered(order); err != nil {
		return err
	}
	for _, op := range ops {
		t := terms[op.Lease.Token]
		if t == nil || op.Kind == Acquire {
			continue
		}
		switch {
		case op.Kind == Release:
			if t.released.IsZero() {
				t.released = op.Called
			}
		case op.Err == nil:
			t.renewed = op.Called
			if op.Lease.ExpiresAt.After(t.expires) {
				t.expires = op.Lease.ExpiresAt
			}
		case errors.Is(op.Err, lease.ErrLost) && t.released.IsZero() && op.Ended.Before(t.expires):
			return fmt.Errorf("caller %d lost token %d at %v, before it expired at %v", op.Caller, op.Lease.Token, op.Ended, t.expires)
		}
	}
	slices.SortFunc(order, func(a, b *term) int { return int(a.acquire.Lease.Token - b.acquire.Lease.Token) })
	for i := 1; i < len(order); i++ {
		if err := handedOver(order[i-1], order[i]); err != nil {
			return err
		}
	}
	return nil
}

// ordered checks that tokens follow real time. The terms are in the order of
// their calls.
func ordered(terms []*term) error {
	ended := slices.Clone(terms)
	slices.SortFunc(ended, func(a, b *term) int { return a.acquire.Ended.Compare(b.acquire.Ended) })
	var highest fence.Token
	i := 0
	for _, t := range terms {
		for ; i < len(ended) && ended[i].acquire.Ended.Before(t.acquire.Called); i++ {
			highest = max(highest, ended[i].acquire.Lease.Token)
		}
		if t.acquire.Lease.Token <= highest {
			return fmt.Errorf("caller %d was granted token %d after token %d had been", t.acquire.Caller, t.acquire.Lease.Token, highest)
		}
	}
	return nil
}

// handedOver checks that a had ended when b was granted.
func handedOver(a, b *term) error {
	released := !a.released.IsZero() && a.released.Before(b.acquire.Ended)
	expired := !a.expires.After(b.acquire.Lease.AcquiredAt)
	if !released && !expired {
		return fmt.Errorf("token %d was granted at %v while token %d was held until %v",
			b.acquire.Lease.Token, b.acquire.Lease.AcquiredAt, a.acquire.Lease.Token, a.expires)
	}
	if a.renewed.After(b.acquire.Ended) {
		return fmt.Errorf("token %d was renewed after token %d had been granted", a.acquire.Lease.Token, b.acquire.Lease.Token)
	}
	return nil
}
