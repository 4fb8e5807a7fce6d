// Package memlease keeps leases in the memory of one process, for tests and for
// trying things out. It promises all that a [lease.Service] does while the process
// lives. What it granted is forgotten when the process ends.
package memlease

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// A Store is a [lease.Service]. The zero value is ready to use. Tokens grow also
// from one process to the next, for as long as the clock goes forward.
type Store struct {
	// Rules are the limits. Set them before the first call.
	Rules protocol.Rules

	mu      sync.Mutex
	records map[lease.Name]protocol.Record
	sweepAt int // the number of records at which to look for retired ones
}

var _ lease.Service = (*Store)(nil)

// Acquire implements [lease.Service].
func (m *Store) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	if err := m.check(); err != nil {
		return lease.Lease{}, err
	}
	g, err := m.Rules.Grant(q, lease.CallFrom(ctx).Principal)
	if err != nil {
		return lease.Lease{}, err
	}
	return protocol.Await(ctx, q.Wait, func(ctx context.Context) (lease.Lease, error) {
		r, now, repeated, err := m.change(ctx, q.Name, func(r protocol.Record, now protocol.Instant) (protocol.Record, error) {
			return r.Acquire(now, g, m.Rules)
		})
		if err != nil {
			return lease.Lease{}, err
		}
		l := r.Lease(q.Name, now, r.TTL)
		l.Repeated = repeated
		return l, nil
	}, func(context.Context) error {
		r, now := m.record(q.Name)
		return r.Awaited(now, g)
	})
}

// Renew implements [lease.Service].
func (m *Store) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	if err := cmp.Or(m.check(), q.Validate()); err != nil {
		return lease.Lease{}, err
	}
	r, now, _, err := m.change(ctx, q.Name, func(r protocol.Record, now protocol.Instant) (protocol.Record, error) {
		return r.Renew(now, q, m.Rules)
	})
	if err != nil {
		return lease.Lease{}, err
	}
	return r.Lease(q.Name, now, q.TTL), nil
}

// Release implements [lease.Service].
func (m *Store) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	if err := cmp.Or(m.check(), q.Validate()); err != nil {
		return lease.State{}, err
	}
	if q.RequestID != "" {
		return m.withdraw(ctx, q.Name, protocol.Withdrawal{RequestID: q.RequestID, Principal: lease.CallFrom(ctx).Principal})
	}
	ctx = lease.WithCall(ctx, new(lease.Call)) // giving up is safe whatever the clock says
	var before protocol.Record
	_, now, _, err := m.change(ctx, q.Name, func(r protocol.Record, _ protocol.Instant) (protocol.Record, error) {
		before = r
		return r.Release(q)
	})
	if err != nil {
		return lease.State{}, err
	}
	return before.Released(now, q)
}

// withdraw makes transitions until there is none left to make.
func (m *Store) withdraw(ctx context.Context, n lease.Name, w protocol.Withdrawal) (lease.State, error) {
	var found lease.Ending
	for {
		var before protocol.Record
		r, now, settled, err := m.change(ctx, n, func(r protocol.Record, now protocol.Instant) (protocol.Record, error) {
			before = r
			return r.Withdraw(now, w, m.Rules)
		})
		switch {
		case err != nil && found != 0: // its lease was ended, and there is no room for its marker
			return lease.State{}, fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, err)
		case err != nil:
			return lease.State{}, err
		case found == 0:
			found = before.Withdrawn(n, now, w).Ended
		}
		if settled {
			s := r.Withdrawn(n, now, w)
			s.Ended = found
			return s, nil
		}
	}
}

// Break implements [lease.Service].
func (m *Store) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	if err := cmp.Or(m.check(), q.Validate()); err != nil {
		return lease.Broken{}, err
	}
	r, now, repeated, err := m.change(ctx, q.Name, func(r protocol.Record, now protocol.Instant) (protocol.Record, error) {
		return r.Break(now, q.Token, m.Rules)
	})
	if err != nil {
		return lease.Broken{}, err
	}
	return lease.Broken{State: r.State(q.Name, now), AlreadyFree: repeated}, nil
}

// Get implements [lease.Service].
func (m *Store) Get(_ context.Context, n lease.Name) (lease.State, error) {
	if err := cmp.Or(m.check(), n.Validate()); err != nil {
		return lease.State{}, err
	}
	r, now := m.record(n)
	return r.State(n, now), nil
}

// check refuses to go by rules that are out of range.
func (m *Store) check() error {
	if err := m.Rules.Validate(time.Now()); err != nil {
		return fmt.Errorf("%w: %w", lease.ErrMisconfigured, err)
	}
	return nil
}

// change makes one transition. repeated says that it changed nothing.
func (m *Store) change(ctx context.Context, n lease.Name, transition func(protocol.Record, protocol.Instant) (protocol.Record, error)) (next protocol.Record, now protocol.Instant, repeated bool, err error) {
	if ctx.Err() != nil {
		return protocol.Record{}, 0, false, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now = protocol.At(time.Now())
	if err := m.Rules.Open(now, lease.CallFrom(ctx)); err != nil {
		return protocol.Record{}, now, false, err
	}
	r := m.records[n]
	next, err = transition(r, now)
	if err != nil || next == r {
		return r, now, true, err
	}
	if m.records == nil {
		m.records = make(map[lease.Name]protocol.Record)
	}
	m.records[n] = next
	m.sweep(now)
	return next, now, false, nil
}

func (m *Store) record(n lease.Name) (protocol.Record, protocol.Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[n], protocol.At(time.Now())
}

// sweep forgets retired records whenever their number has doubled, so that it
// costs a constant per grant.
func (m *Store) sweep(now protocol.Instant) {
	if len(m.records) < max(m.sweepAt, 1024) {
		return
	}
	for n, r := range m.records {
		if r.Retire < now.Seconds() {
			delete(m.records, n)
		}
	}
	m.sweepAt = 2 * len(m.records)
}
