package dynamolease

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A serverClock is what the last dated answer told of DynamoDB's clock: by how
// much it is ahead of this host's, between least and most.
type serverClock struct {
	mu          sync.Mutex
	known       bool
	least, most time.Duration
}

// date takes the time that an answer tells. It is in whole seconds, and was read
// at some time between the request and the answer, so that a slow answer makes
// it less certain and not wrong.
func (a *attempts) date(header string, sent, received time.Time) {
	at, err := http.ParseTime(header)
	if err != nil {
		return // it came from something in between
	}
	a.dated = true
	a.least, a.most = at.Sub(received), at.Add(time.Second).Sub(sent)
}

func (c *serverClock) learn(a *attempts) {
	if !a.dated {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.least, c.most = true, a.least, a.most
}

// agree reports whether the clocks are known, and whether they agree as far as
// is known.
func (s *Store) agree() (known bool, err error) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	if !s.clock.known {
		return false, nil
	}
	return true, s.Rules.Agree(s.clock.least, s.clock.most)
}

// open returns the time, if it is certain enough to grant, renew or break by it.
// Without a gateway that has told the time of the call, DynamoDB is asked for
// it: once, and again while the clocks do not agree.
func (s *Store) open(ctx context.Context, n lease.Name) (lease.Instant, error) {
	call := lease.CallFrom(ctx)
	if known, err := s.agree(); call.Received.IsZero() && (!known || err != nil) {
		if _, _, err := s.read(ctx, n); err != nil {
			return 0, err
		}
	}
	now := s.now()
	if err := s.Rules.Open(now, call); err != nil {
		return 0, err
	}
	_, err := s.agree()
	return now, err
}

// confirm gives a lease back if the answer that granted it tells that the clocks
// do not agree any more.
func (s *Store) confirm(ctx context.Context, l lease.Lease) (lease.Lease, error) {
	if _, err := s.agree(); err != nil {
		// Nobody has the lease id. If it cannot be given back, it runs out.
		_, _ = s.Release(ctx, lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token})
		return lease.Lease{}, err
	}
	return l, nil
}
