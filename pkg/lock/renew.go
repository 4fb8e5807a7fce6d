package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// interval is a third of the TTL, less up to a tenth of that, so that the
// renewals of many locks spread out.
func interval(ttl time.Duration) time.Duration { return ttl/3 - rand.N(ttl/30+1) }

// renew renews the lease once and sets the time of the next renewal. After one
// of unknown outcome the old deadline stands and it is repeated: renewing twice
// does no harm. Only a refusal ends it, or the deadline.
func (h *Held) renew() {
	h.expire() // a process that was paused must not revive what it has lost
	ttl := h.client.ttl()
	// A request that hangs must not use up the time in which another would get
	// through.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), max(ttl/5, 500*time.Millisecond))
	defer cancel()
	if !h.beginRenewal(cancel) {
		return
	}
	asked := time.Now()
	due := asked.Add(interval(ttl))
	l, err := h.client.Service.Renew(ctx, lease.RenewRequest{Name: h.lease.Name, LeaseID: h.lease.ID, Token: h.lease.Token, TTL: ttl})
	switch {
	case err == nil && h.extend(asked, l.Remaining):
		h.client.tell(h.ctx, Event{Kind: Renewed, Lock: h.name, Token: h.Token(), Took: time.Since(asked)})
	case err == nil:
		h.expire()
	case errors.Is(err, lease.ErrLost):
		h.lose(fmt.Errorf("%w: %w", ErrLost, err))
	default:
		if failures := h.failed(); failures > 0 {
			h.client.tell(h.ctx, Event{Kind: Unrenewed, Lock: h.name, Token: h.Token(), Err: err})
			// Soon enough, whatever the service asks for, that an outage of half
			// a TTL is survived whenever it begins.
			due = time.Now().Add(min(pauseAfter(err, failures), ttl/20))
		}
	}
	h.endRenewal(due)
}

// beginRenewal reports whether the lease is still to be renewed.
func (h *Held) beginRenewal(abort context.CancelFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return false
	}
	h.doubt = true
	h.renewing, h.abort = make(chan struct{}), abort
	return true
}

// failed counts a failure. It returns 0 if the lease is not to be renewed any
// more: then that is why the request failed.
func (h *Held) failed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return 0
	}
	h.failures++
	return h.failures
}

// endRenewal has the next renewal begin at due.
func (h *Held) endRenewal(due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.renewing)
	h.renewing, h.abort = nil, nil
	if h.err == nil {
		h.next.Reset(time.Until(due))
	}
}
