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

// attemptTime is how long one renewal may take. One that hangs must not use up
// the time in which another would get through.
func attemptTime(ttl time.Duration) time.Duration { return max(ttl/5, 500*time.Millisecond) }

// renew renews the lease once and sets the time of the next renewal. After one
// of unknown outcome the old deadline stands and it is repeated: renewing twice
// does no harm. Only a refusal ends it, or the deadline.
func (h *Held) renew(a *attempt) {
	verdict := lease.Verdict{Outcome: lease.Done}
	defer func() {
		h.keeper().ended(a, verdict.Outcome == lease.Done || verdict.Outcome == lease.Refused && !verdict.Repair)
	}()
	if tell := h.expire(); tell != nil { // a process that was paused must not revive what it has lost
		tell()
	}
	ttl := h.client.ttl()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), attemptTime(ttl))
	defer cancel()
	if !h.beginRenewal(cancel) {
		return
	}
	ended := false
	defer func() {
		if !ended { // the service has ended this goroutine
			verdict = lease.Classify(errGoexit)
			due, _ := h.failedAgain(errGoexit, verdict)
			h.endRenewal(due)
		}
	}()
	asked := now()
	l, err := protected(func() (lease.Lease, error) {
		return h.client.Service.Renew(ctx, lease.RenewRequest{Name: h.lease.Name, LeaseID: h.lease.ID, Token: h.lease.Token, TTL: ttl})
	})
	verdict = lease.Classify(err)
	var tell func()
	due := asked.Add(interval(ttl))
	switch {
	case err == nil && h.extend(asked, l.Remaining):
		tell = func() {
			h.client.tell(h.ctx, Event{Kind: Renewed, Lock: h.name, Token: h.Token(), Took: time.Since(asked.Time)})
		}
	case err == nil:
		tell = h.expire()
	case errors.Is(err, lease.ErrLost):
		tell = h.lose(lost(err))
	default:
		var again bool
		if due, again = h.failedAgain(err, verdict); again {
			tell = func() { h.client.tell(h.ctx, Event{Kind: Unrenewed, Lock: h.name, Token: h.Token(), Err: err}) }
		}
	}
	ended = true
	h.endRenewal(due)
	if tell != nil { // last: an observer that is slow keeps nothing from being renewed
		tell()
	}
}

// lost is the error for a lease that the service says is over.
func lost(err error) error {
	if err == lease.ErrLost {
		return ErrLost
	}
	return fmt.Errorf("%w (%w)", ErrLost, err)
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

// failedAgain counts a failure and returns when to try again: soon enough,
// whatever the service asks for, that an outage of half a TTL is survived whenever
// it begins, and the sooner the less trust is left. If the lease is not to be
// renewed any more, that is why the request failed.
func (h *Held) failedAgain(err error, v lease.Verdict) (due time.Time, again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return time.Time{}, false
	}
	h.failures++
	h.failed = err
	v.Repair = false
	pause := min(pauseAfter(v, h.failures), h.client.ttl()/20, max(h.asked.until(h.until)/8, 50*time.Millisecond))
	return time.Now().Add(pause), true
}

// endRenewal has the next renewal begin at due.
func (h *Held) endRenewal(due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.renewing)
	h.renewing, h.abort = nil, nil
	if h.deciding != nil {
		due = time.Now().Add(50 * time.Millisecond)
	}
	if h.err == nil {
		h.keeper().next(h, due, h.until)
	}
}
