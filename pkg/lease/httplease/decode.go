package httplease

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-lock/pawl/pkg/lease"
)

var jsonAsIs = jsontext.AllowInvalidUTF8(true)

func (b leaseBody) lease() (lease.Lease, error) {
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
	if t.err == nil && (!l.Token.Valid() || l.ID == "") {
		t.err = fmt.Errorf("it is no lease")
	}
	return l, t.failure()
}

func (b stateBody) state() (lease.State, error) {
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
	return s, t.failure()
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

// failure is for a success that cannot be read: what it says was done.
func (t *times) failure() error {
	if t.err == nil {
		return nil
	}
	return fmt.Errorf("%w: httplease: the answer is not what it should be: %w", lease.ErrOutcomeUnknown, t.err)
}
