package protocol

import (
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// Grant checks q under r and makes it ready to be recorded for principal, with
// a new lease id and, unless it has one, a new request id.
func (r Rules) Grant(q lease.AcquireRequest, principal string) (Grant, error) {
	if err := q.Validate(r.maxTTL(), r.maxLockDelay()); err != nil {
		return Grant{}, err
	}
	if q.RequestID == "" {
		q.RequestID = lease.NewID()
	}
	return Grant{
		LeaseID:   lease.NewID(),
		RequestID: q.RequestID,
		Holder:    q.Holder,
		Principal: principal,
		Metadata:  q.Metadata,
		TTL:       q.TTL,
		MinHold:   q.MinHold,
		Delay:     r.skew() + q.LockDelay,
	}, nil
}

// Lease returns the lease that holds the lock n, as seen at now. Remaining is
// never more than ttl: the clock that wrote the record may be ahead of this one.
func (r Record) Lease(n lease.Name, now Instant, ttl time.Duration) lease.Lease {
	l := lease.Lease{
		Name:       n,
		Token:      r.Token,
		ID:         r.LeaseID,
		Holder:     r.Holder,
		TTL:        r.TTL,
		AcquiredAt: r.Since.Time(),
		ExpiresAt:  r.Expires.Time(),
		Remaining:  min(r.Expires.Sub(now), ttl),
	}
	if r.PrevExpires != 0 {
		l.Abandoned = &lease.Abandoned{Holder: r.PrevHolder, Token: r.PrevToken, ExpiredAt: r.PrevExpires.Time()}
	}
	return l
}

// State returns what anyone may know of the lock n at now.
func (r Record) State(n lease.Name, now Instant) lease.State {
	s := lease.State{Name: n, Held: r.HeldAt(now), Token: r.Token, Holder: r.Holder}
	if r.Free > now {
		s.AvailableAt = r.Free.Time()
	}
	switch {
	case s.Held:
		s.Metadata, s.Remaining = r.Metadata, r.Expires.Sub(now)
		s.AcquiredAt, s.ExpiresAt = r.Since.Time(), r.Expires.Time()
	case r.LeaseID != "":
		s.Abandoned = &lease.Abandoned{Holder: r.Holder, Token: r.Token, ExpiredAt: r.Expires.Time()}
	}
	return s
}

// Released returns the state of a lock at now, after the release q has been made
// of r, or fails as [Record.Release] does. Of holders, it names that of the
// lease that q names, and no successor.
func (r Record) Released(now Instant, q lease.ReleaseRequest) (lease.State, error) {
	next, err := r.Release(q)
	if err != nil {
		return lease.State{}, err
	}
	s := next.State(q.Name, now)
	switch {
	case next == r:
		s.Ended = lease.ReleasedBefore
		if r.Token != q.Token {
			s.Holder = r.PrevHolder
		}
	case r.Expires <= now:
		s.Ended = lease.ReleasedLate
	default:
		s.Ended = lease.Released
	}
	return s, nil
}

// checkToken guards against a record that something else has written: counting
// from the clock, a token reaches the largest in the year 33658.
func checkToken(t fence.Token) error {
	if t.Valid() {
		return nil
	}
	return fmt.Errorf("%w: the token %d is out of range", lease.ErrMisconfigured, t)
}
