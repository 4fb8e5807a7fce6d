// Package dynamolease keeps leases in a DynamoDB table: one item per lock, one
// conditional UpdateItem per transition, the token from an atomic counter in
// the same update that grants.
//
// It promises what [lease.Service] promises as long as conditional writes to
// one item are linearizable: in one Region, or in a global table with
// multi-Region strong consistency. A global table with eventual consistency
// grants the same lock twice, and is not supported.
//
// What may be changed, and when, is said by [protocol.Record] alone. Here it is
// said again as DynamoDB expressions, and tests hold the two against each other.
package dynamolease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// A Store is a [lease.Service] on one table.
type Store struct {
	// Client talks to DynamoDB; see [NewClient]. Required.
	Client *dynamodb.Client

	// Table is the table's name; its key is [KeyAttribute]. Required.
	Table string

	// Rules are the deployment's limits, the same on all its hosts.
	Rules protocol.Rules

	// Now reads the clock that decides, and that is compared with DynamoDB's.
	// Nil means [time.Now].
	Now func() time.Time

	clock serverClock
}

var _ lease.Service = (*Store)(nil)

// check refuses what only whoever set the store up can repair.
func (s *Store) check() error {
	var err error
	switch {
	case s.Client == nil:
		err = errors.New("the store has no Client")
	case s.Table == "":
		err = errors.New("the store has no Table")
	default:
		err = s.Rules.Validate(s.time())
	}
	if err != nil {
		return fmt.Errorf("%w: dynamolease: %w", lease.ErrMisconfigured, err)
	}
	return nil
}

// maxRounds is how often an acquire is tried while others are granted the lock
// and give it up again in between: once for any item, then for the item seen.
const maxRounds = 4

// Acquire implements [lease.Service]. It takes one request, whether the lock is
// granted, held, or was granted to this request id before. It takes two when
// the lock was granted in the same millisecond or by a host with a faster clock.
// One more, a read, compares the clocks after they disagreed, and where no
// gateway has told the time of the call, before the first request of a store and
// after a minute without any.
func (s *Store) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	if err := s.check(); err != nil {
		return lease.Lease{}, err
	}
	g, err := s.Rules.Grant(q, lease.CallFrom(ctx).Principal)
	if err != nil {
		return lease.Lease{}, err
	}
	return protocol.Await(ctx, q.Wait, func(ctx context.Context) (lease.Lease, error) {
		return s.grant(ctx, q.Name, g)
	}, func(ctx context.Context) error {
		r, now, err := s.read(ctx, q.Name)
		if err != nil {
			return err
		}
		return r.Awaited(now, g)
	})
}

func (s *Store) grant(ctx context.Context, n lease.Name, g protocol.Grant) (lease.Lease, error) {
	var seen protocol.Record
	for round := 1; ; round++ {
		now, err := s.open(ctx, n)
		if err != nil {
			return lease.Lease{}, err
		}
		next, err := seen.Acquire(now, g, s.Rules)
		if err != nil {
			return lease.Lease{}, err
		}
		if next == seen { // granted to an earlier call with the same request id
			l := seen.Lease(n, now, seen.TTL)
			l.Repeated = true
			return l, nil
		}
		if round > maxRounds {
			return lease.Lease{}, &lease.RetryError{Err: lease.ErrUnavailable, After: 100 * time.Millisecond}
		}
		o, err := s.update(ctx, n, granting(seen, next, s.Rules.Floor()))
		switch {
		case err != nil:
			return lease.Lease{}, err
		case o.LeaseID == g.LeaseID: // by this attempt, or by one that had no answer
			return s.confirm(ctx, n, g, o)
		}
		if seen = o.Record; o.unanswered && (seen.RequestID == g.RequestID || seen.Markers.Until(g.Mark()) != 0) {
			// What the item tells of this request comes before what a clock does.
			if _, err := seen.Acquire(s.now(), g, s.Rules); err != nil {
				return lease.Lease{}, err
			}
		}
	}
}

// takeBackTime is for how long a grant is tried to be taken back.
const takeBackTime = 2 * time.Second

// confirm returns the lease that this call has been granted. It gives the lease
// back where the clock that granted it, or the age of the call, turns out to
// forbid that.
func (s *Store) confirm(ctx context.Context, n lease.Name, g protocol.Grant, o outcome) (lease.Lease, error) {
	// The request says by which reading of the clock it was granted. The clock may
	// have been set since, and the call may have grown old.
	now := s.now()
	err := o.skew
	if err == nil {
		err = s.Rules.Open(now, lease.CallFrom(ctx))
	}
	if err == nil {
		if _, err := o.Acquire(now, g, s.Rules); err != nil {
			return lease.Lease{}, err // it has run out already
		}
		err = s.Rules.Since(o.Since, now)
	}
	if err == nil {
		return o.Lease(n, now, o.TTL), nil
	}
	// Nobody has the lease id: what cannot be taken back runs out. The caller may
	// have left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	back, failure := s.update(ctx, n, takingBack(o.Record))
	if held := back.LeaseID == o.LeaseID && back.Expires > now; failure != nil || back.refused && held {
		return lease.Lease{}, outcomeUnknown(fmt.Errorf("granted, and not taken back though %w: %w", err, failure))
	}
	return lease.Lease{}, err
}

// Renew implements [lease.Service] in one request.
func (s *Store) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	if err := s.check(); err != nil {
		return lease.Lease{}, err
	}
	if err := q.Validate(); err != nil {
		return lease.Lease{}, err
	}
	now, err := s.open(ctx, q.Name)
	if err != nil {
		return lease.Lease{}, err
	}
	// Of the record that the condition asks for, Record says what becomes of it.
	want := protocol.Record{Token: q.Token, LeaseID: q.LeaseID, Expires: now + 1}
	next, err := want.Renew(now, q, s.Rules)
	if err != nil {
		return lease.Lease{}, err
	}
	o, err := s.update(ctx, q.Name, renewing(now, next))
	if err != nil {
		return lease.Lease{}, err
	}
	sent := now
	now = s.now()
	skew := o.skew
	if skew == nil {
		skew = s.Rules.Since(sent, now)
	}
	switch {
	case skew != nil && !o.refused: // it is extended, and nobody may rely on it
		return lease.Lease{}, outcomeUnknown(fmt.Errorf("renewed, though %w", skew))
	case skew != nil:
		return lease.Lease{}, skew
	}
	// By now it may have run out. A refusal says that the lease lives as long
	// already, or why it does not.
	if _, err := o.Renew(now, q, s.Rules); err != nil {
		return lease.Lease{}, err
	}
	// The item tells the expiry: what Renew makes of it now has not been written.
	return o.Lease(q.Name, now, q.TTL), nil
}

// Release implements [lease.Service] in one request. No clock is checked:
// giving up is safe at any time. By request id it takes a read too, and the
// clocks agree: a marker is written by the one and removed by another.
func (s *Store) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	if err := s.check(); err != nil {
		return lease.State{}, err
	}
	if err := q.Validate(); err != nil {
		return lease.State{}, err
	}
	if q.RequestID != "" {
		return s.withdraw(ctx, q.Name, protocol.Withdrawal{RequestID: q.RequestID, Principal: lease.CallFrom(ctx).Principal})
	}
	now := s.now()
	o, err := s.update(ctx, q.Name, releasing(q))
	if err != nil {
		return lease.State{}, err
	}
	state, err := o.Released(now, q) // the item as it was tells how the lease ended
	if o.skew != nil && state.Ended == lease.ReleasedLate {
		state.Ended = lease.Released // this clock does not know
	}
	if o.unanswered && errors.Is(err, lease.ErrLost) {
		// Released by that attempt, it may have been granted again more than
		// once since: Record knows only of the last lease before this one.
		return state, outcomeUnknown(errors.New("lost, unless it was released by an attempt without an answer"))
	}
	return state, err
}

// Break implements [lease.Service] in one request.
func (s *Store) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	if err := s.check(); err != nil {
		return lease.Broken{}, err
	}
	if err := q.Validate(); err != nil {
		return lease.Broken{}, err
	}
	now, err := s.open(ctx, q.Name)
	if err != nil {
		return lease.Broken{}, err
	}
	want := protocol.Record{Token: q.Token, LeaseID: "any"}
	next, err := want.Break(now, q.Token, s.Rules)
	if errors.Is(err, lease.ErrMisconfigured) {
		return s.breakLast(ctx, q)
	}
	if err != nil {
		return lease.Broken{}, err
	}
	o, err := s.update(ctx, q.Name, breaking(want, next))
	if err != nil {
		return lease.Broken{}, err
	}
	// A grant on top of the lease that was to be broken says that no break came
	// between.
	maybe := o.unanswered && o.Token >= next.Token && o.PrevToken != q.Token
	mine := !o.refused || maybe && o.Token == next.Token && o.LeaseID == ""
	switch {
	case maybe && !mine:
		return lease.Broken{}, outcomeUnknown(errors.New("granted since, maybe after an attempt without an answer broke it"))
	case o.skew != nil && mine:
		return lease.Broken{}, outcomeUnknown(fmt.Errorf("broken, though %w", o.skew))
	case o.skew != nil:
		return lease.Broken{}, o.skew
	case o.refused:
		if o.Record, err = o.Break(now, q.Token, s.Rules); err != nil {
			return lease.Broken{}, err
		}
	}
	return lease.Broken{State: o.State(q.Name, now), AlreadyFree: !mine}, nil
}

// breakLast answers a break of a token above which there is none. It is in no
// item of ours, but anyone may ask for it.
func (s *Store) breakLast(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	r, now, err := s.read(ctx, q.Name)
	if err != nil {
		return lease.Broken{}, err
	}
	if r, err = r.Break(now, q.Token, s.Rules); err != nil {
		return lease.Broken{}, err
	}
	return lease.Broken{State: r.State(q.Name, now), AlreadyFree: true}, nil
}
