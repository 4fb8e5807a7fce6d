package httplease

import (
	"errors"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// lease returns the lease of the lock of. Whatever else answers with a success,
// be it a login page or a cache, grants nothing.
func (b leaseBody) lease(of lease.Name) (lease.Lease, error) {
	var t times
	l := lease.Lease{
		Name:       lease.Name{Namespace: b.Namespace, Lock: b.Lock},
		Token:      b.Token,
		ID:         b.LeaseID,
		Holder:     b.Holder,
		TTL:        b.TTL.duration(),
		AcquiredAt: t.parse(b.AcquiredAt),
		ExpiresAt:  t.parse(b.ExpiresAt),
		Remaining:  b.Remaining.duration(),
		Abandoned:  b.Abandoned.abandoned(&t),
	}
	if t.err == nil && (l.Name != of || !l.Token.Valid() || l.ID == "") {
		t.err = errors.New("it is no lease of the lock")
	}
	if t.err != nil {
		return lease.Lease{}, unread("acquire", t.err)
	}
	return l, nil
}

// state returns the state of the lock of, as action was answered.
func (b stateBody) state(action string, of lease.Name) (lease.State, error) {
	var t times
	s := lease.State{
		Name:        lease.Name{Namespace: b.Namespace, Lock: b.Lock},
		Held:        b.State == "held",
		Token:       b.Token,
		Metadata:    b.Metadata,
		AcquiredAt:  t.parse(b.AcquiredAt),
		ExpiresAt:   t.parse(b.ExpiresAt),
		AvailableAt: t.parse(b.AvailableAt),
		Abandoned:   b.Abandoned.abandoned(&t),
	}
	if b.Holder != nil {
		s.Holder = *b.Holder
	}
	if b.Remaining != nil {
		s.Remaining = b.Remaining.duration()
	}
	if t.err == nil && (s.Name != of || b.State != "held" && b.State != "free") {
		t.err = errors.New("it is no state of the lock")
	}
	if t.err != nil {
		return lease.State{}, unread(action, t.err)
	}
	return s, nil
}

func (b *abandonedBody) abandoned(t *times) *lease.Abandoned {
	if b == nil {
		return nil
	}
	return &lease.Abandoned{Holder: b.Holder, Token: b.Token, ExpiredAt: t.parse(b.ExpiredAt)}
}

// times parses stamps and keeps the first error.
type times struct{ err error }

func (t *times) parse(s stamp) time.Time {
	at, err := s.time()
	if err != nil && t.err == nil {
		t.err = err
	}
	return at.UTC()
}
