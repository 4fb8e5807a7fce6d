package lease

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Memory is a [Service] that keeps its records in the memory of one process,
// for tests and for trying things out. The zero value is ready to use. What it
// granted is forgotten when the process ends; only the clock keeps its tokens
// growing then.
type Memory struct {
	// Rules are the limits. Set them before the first call.
	Rules Rules

	mu      sync.Mutex
	records map[Name]Record
	sweepAt int // the number of records at which to look for retired ones
}

var _ Service = (*Memory)(nil)

// Acquire implements [Service].
func (m *Memory) Acquire(ctx context.Context, q AcquireRequest) (Lease, error) {
	if err := m.check(); err != nil {
		return Lease{}, err
	}
	g, err := m.Rules.Grant(q, CallFrom(ctx).Principal)
	if err != nil {
		return Lease{}, err
	}
	return Await(ctx, q.Wait, func(ctx context.Context) (Lease, error) {
		r, now, repeated, err := m.change(ctx, q.Name, func(r Record, now Instant) (Record, error) {
			return r.Acquire(now, g, m.Rules)
		})
		if err != nil {
			return Lease{}, err
		}
		l := r.Lease(q.Name, now, r.TTL)
		l.Repeated = repeated
		return l, nil
	}, func(context.Context) error {
		r, now := m.record(q.Name)
		return r.Awaited(now, g)
	})
}

// Renew implements [Service].
func (m *Memory) Renew(ctx context.Context, q RenewRequest) (Lease, error) {
	if err := cmp.Or(m.check(), q.Validate()); err != nil {
		return Lease{}, err
	}
	r, now, _, err := m.change(ctx, q.Name, func(r Record, now Instant) (Record, error) {
		return r.Renew(now, q, m.Rules)
	})
	if err != nil {
		return Lease{}, err
	}
	return r.Lease(q.Name, now, q.TTL), nil
}

// Release implements [Service].
func (m *Memory) Release(ctx context.Context, q ReleaseRequest) (State, error) {
	if err := cmp.Or(m.check(), q.Validate()); err != nil {
		return State{}, err
	}
	if q.RequestID != "" {
		return m.withdraw(ctx, q.Name, Withdrawal{q.RequestID, CallFrom(ctx).Principal})
	}
	ctx = WithCall(ctx, new(Call)) // giving up is safe whatever the clock says
	var before Record
	_, now, _, err := m.change(ctx, q.Name, func(r Record, _ Instant) (Record, error) {
		before = r
		return r.Release(q)
	})
	if err != nil {
		return State{}, err
	}
	return before.Released(now, q)
}

// withdraw makes transitions until there is none left to make.
func (m *Memory) withdraw(ctx context.Context, n Name, w Withdrawal) (State, error) {
	var found Ending
	for {
		var before Record
		r, now, settled, err := m.change(ctx, n, func(r Record, now Instant) (Record, error) {
			before = r
			return r.Withdraw(now, w, m.Rules)
		})
		switch {
		case err != nil && found != 0: // its lease was ended, and there is no room for its marker
			return State{}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		case err != nil:
			return State{}, err
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

// Break implements [Service].
func (m *Memory) Break(ctx context.Context, q BreakRequest) (Broken, error) {
	if err := cmp.Or(m.check(), q.Validate()); err != nil {
		return Broken{}, err
	}
	r, now, repeated, err := m.change(ctx, q.Name, func(r Record, now Instant) (Record, error) {
		return r.Break(now, q.Token, m.Rules)
	})
	if err != nil {
		return Broken{}, err
	}
	return Broken{State: r.State(q.Name, now), AlreadyFree: repeated}, nil
}

// Get implements [Service].
func (m *Memory) Get(_ context.Context, n Name) (State, error) {
	if err := cmp.Or(m.check(), n.Validate()); err != nil {
		return State{}, err
	}
	r, now := m.record(n)
	return r.State(n, now), nil
}

// check refuses to go by rules that are out of range.
func (m *Memory) check() error {
	if err := m.Rules.Validate(time.Now()); err != nil {
		return fmt.Errorf("%w: %w", ErrMisconfigured, err)
	}
	return nil
}

// change makes one transition. repeated says that it changed nothing.
func (m *Memory) change(ctx context.Context, n Name, transition func(Record, Instant) (Record, error)) (next Record, now Instant, repeated bool, err error) {
	if ctx.Err() != nil {
		return Record{}, 0, false, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now = At(time.Now())
	if err := m.Rules.Open(now, CallFrom(ctx)); err != nil {
		return Record{}, now, false, err
	}
	r := m.records[n]
	next, err = transition(r, now)
	if err != nil || next == r {
		return r, now, true, err
	}
	if m.records == nil {
		m.records = make(map[Name]Record)
	}
	m.records[n] = next
	m.sweep(now)
	return next, now, false, nil
}

func (m *Memory) record(n Name) (Record, Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[n], At(time.Now())
}

// sweep forgets retired records whenever their number has doubled, so that it
// costs a constant per grant.
func (m *Memory) sweep(now Instant) {
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
