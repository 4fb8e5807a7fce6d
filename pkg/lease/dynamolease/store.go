// Package dynamolease keeps leases in a DynamoDB table: one item per lock, one
// conditional UpdateItem per transition, the token from an atomic counter in
// the same update that grants.
//
// It promises what [lease.Service] promises as long as conditional writes to
// one item are linearizable: in one Region, or in a global table with
// multi-Region strong consistency. A global table with eventual consistency
// grants the same lock twice, and is not supported.
//
// What may be changed, and when, is said by [lease.Record] alone. Here it is
// said again as DynamoDB expressions, and tests hold the two against each other.
package dynamolease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Store is a [lease.Service] on one table.
type Store struct {
	// Client talks to DynamoDB; see [NewClient]. Required.
	Client *dynamodb.Client

	// Table is the table's name. Its only key is the partition key "pk", a
	// string. Required.
	Table string

	// Rules are the deployment's limits, the same on all its hosts.
	Rules lease.Rules

	// Now reads the clock. Nil means [time.Now].
	Now func() time.Time

	clock serverClock
}

var _ lease.Service = (*Store)(nil)

// maxRounds is how often an acquire is tried while others are granted the lock
// and give it up again in between: once for any item, then for the item seen.
const maxRounds = 4

// errRefused says that a condition failed. The record returned with it is the
// one that was found.
var errRefused = errors.New("dynamolease: condition failed")

// errRefusedAfter is errRefused after an attempt of the same request that had no
// answer: what the condition failed on may be what that attempt has done.
var errRefusedAfter = fmt.Errorf("%w after an attempt without an answer", errRefused)

// Acquire implements [lease.Service]. It takes one request, whether the lock is
// granted, held, or was granted to this request id before. It takes two when
// the lock was granted in the same millisecond or by a host with a faster clock.
// Where no gateway has told the time of the call, the first request of a store
// is one more, a read, to compare the clocks.
func (s *Store) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	g, err := s.Rules.Grant(q, lease.CallFrom(ctx).Principal)
	if err != nil {
		return lease.Lease{}, err
	}
	return lease.Await(ctx, q.Wait, func(ctx context.Context) (lease.Lease, error) {
		return s.grant(ctx, q.Name, g)
	}, func(ctx context.Context) error {
		r, now, err := s.read(ctx, q.Name)
		if err != nil || r.RequestID == g.RequestID {
			// Granted to an earlier call that was not answered, it is no reason
			// to wait: acquire knows it.
			return err
		}
		return r.Available(now)
	})
}

func (s *Store) grant(ctx context.Context, n lease.Name, g lease.Grant) (lease.Lease, error) {
	var seen lease.Record
	for round := 1; ; round++ {
		now, err := s.open(ctx, n)
		if err != nil {
			return lease.Lease{}, err
		}
		next, err := seen.Acquire(now, g, s.Rules)
		if err != nil {
			return lease.Lease{}, err
		}
		if next == seen {
			l := seen.Lease(n, now, seen.TTL)
			l.Repeated = seen.LeaseID != g.LeaseID // else it was granted to an earlier attempt of this call
			return l, nil
		}
		if round > maxRounds {
			return lease.Lease{}, &lease.RetryError{Err: lease.ErrUnavailable, After: 100 * time.Millisecond}
		}
		found, err := s.update(ctx, n, granting(seen, next, s.Rules.Floor()))
		if err == nil {
			return s.confirm(ctx, found.Lease(n, now, found.TTL))
		}
		if !errors.Is(err, errRefused) {
			return lease.Lease{}, err
		}
		seen = found
	}
}

// Renew implements [lease.Service] in one request.
func (s *Store) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	if err := q.Validate(s.Rules); err != nil {
		return lease.Lease{}, err
	}
	now, err := s.open(ctx, q.Name)
	if err != nil {
		return lease.Lease{}, err
	}
	// Of the record that the condition asks for, Record says what becomes of it.
	want := lease.Record{Token: q.Token, LeaseID: q.LeaseID, Expires: now + 1}
	next, err := want.Renew(now, q, s.Rules)
	if err != nil {
		return lease.Lease{}, err
	}
	r, err := s.update(ctx, q.Name, renewing(now, next))
	if errors.Is(err, errRefused) {
		r, err = r.Renew(now, q, s.Rules)
	}
	if err != nil {
		return lease.Lease{}, err
	}
	return r.Lease(q.Name, now, q.TTL), nil
}

// Release implements [lease.Service] in one request. No clock is checked:
// giving up is safe at any time.
func (s *Store) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	if err := q.Validate(); err != nil {
		return lease.State{}, err
	}
	r, err := s.update(ctx, q.Name, releasing(q))
	if errors.Is(err, errRefused) {
		unanswered := errors.Is(err, errRefusedAfter)
		r, err = r.Release(q)
		if unanswered && errors.Is(err, lease.ErrLost) {
			// Released by that attempt, it may have been granted again more than
			// once since: Record knows only of the last lease before this one.
			err = outcomeUnknown("lost, unless it was released by an attempt without an answer")
		}
	}
	if err != nil {
		return lease.State{}, err
	}
	return r.State(q.Name, s.now()), nil
}

// Break implements [lease.Service] in one request.
func (s *Store) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	if err := q.Validate(); err != nil {
		return lease.Broken{}, err
	}
	now, err := s.open(ctx, q.Name)
	if err != nil {
		return lease.Broken{}, err
	}
	want := lease.Record{Token: q.Token, LeaseID: "any"}
	next, err := want.Break(now, q.Token, s.Rules)
	if errors.Is(err, lease.ErrMisconfigured) {
		return s.breakLast(ctx, q)
	}
	if err != nil {
		return lease.Broken{}, err
	}
	r, err := s.update(ctx, q.Name, breaking(want, next))
	refused := errors.Is(err, errRefused)
	mine := false
	if refused {
		mine = errors.Is(err, errRefusedAfter) && r.Token == next.Token
		r, err = r.Break(now, q.Token, s.Rules)
	}
	if err != nil {
		return lease.Broken{}, err
	}
	return lease.Broken{State: r.State(q.Name, now), AlreadyFree: refused && !mine}, nil
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
