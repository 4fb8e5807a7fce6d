package lock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Held is a lock that is held, and renewed in the background until it is
// released or lost. That costs two timers, and a goroutine only while a renewal
// is under way. Its methods are safe for concurrent use.
type Held struct {
	client *Client
	name   string
	lease  lease.Lease

	ctx  context.Context // of the work
	end  context.CancelCauseFunc
	lost chan struct{}

	mu      sync.Mutex
	until   time.Time // trusted until then
	runsOut time.Time // the lease ends then, by what was confirmed
	doubt   bool      // a renewal was sent since, and not confirmed
	err     error     // why it is not trusted any more

	look     *time.Timer        // at whether trust has ended
	next     *time.Timer        // renewal
	failures int                // of renewals, in a row
	renewing chan struct{}      // closed when the renewal under way has ended
	abort    context.CancelFunc // ends the renewal under way

	releasing sync.Mutex
	over      bool  // the outcome of the release is known
	outcome   error // nil, or ErrLost
	unknown   bool  // an earlier release may have been carried out
}

// errReleased is the cause of the end of a context by a release.
var errReleased = fmt.Errorf("%w: it was released", ErrNotHeld)

// suspendCheck is how often the wall clock is looked at: timers stand still
// while the machine is suspended, and go off late by as much.
const suspendCheck = time.Second

// hold starts to keep a lease that was granted by a request sent at asked.
func (c *Client) hold(parent context.Context, name string, l lease.Lease, asked time.Time) *Held {
	h := &Held{client: c, name: name, lease: l, lost: make(chan struct{})}
	h.ctx, h.end = context.WithCancelCause(fence.NewContext(parent, fence.Holding{Lock: name, Token: l.Token}))
	h.runsOut = asked.Add(l.Remaining)
	h.until = h.runsOut.Add(-c.margin())
	h.mu.Lock() // the timers may go off at once
	defer h.mu.Unlock()
	h.look = time.AfterFunc(min(until(h.until), suspendCheck), h.lookAgain)
	h.next = time.AfterFunc(time.Until(asked.Add(interval(c.ttl()))), h.renew)
	return h
}

// Lock returns the full name of the lock.
func (h *Held) Lock() string { return h.name }

// Token returns the fencing token, to be sent along with every write.
func (h *Held) Token() fence.Token { return h.lease.Token }

// Abandoned returns the lease that this one took over because it had run out,
// or nil. What its holder was doing may be half done.
func (h *Held) Abandoned() *lease.Abandoned { return h.lease.Abandoned }

// Context returns a context that ends when the lock is lost or released, with
// the reason as its cause. It has the values of the context that the lock was
// acquired with, and does not end with it. It carries the token, so that a
// [fence.Transport] sends it along.
func (h *Held) Context() context.Context { return h.ctx }

// Lost returns a channel that is closed when the lock is lost. It stays open
// when the lock is released.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// Deadline returns until when the lock is trusted, unless it is renewed.
func (h *Held) Deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// Err returns nil while the lock is held, then [ErrLost] or [ErrUnconfirmed], or
// an error that matches [ErrNotHeld] after a release. It looks at the clock, so
// right after the process was paused it knows before the context does.
func (h *Held) Err() error {
	h.expire()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// lookAgain ends trust if its time is over, and looks again if it is not.
func (h *Held) lookAgain() {
	h.expire()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.look.Reset(min(until(h.until), suspendCheck))
	}
}

// expire ends trust if its time is over.
func (h *Held) expire() {
	h.mu.Lock()
	if h.err != nil || until(h.until) > 0 {
		h.mu.Unlock()
		return
	}
	// Without a renewal under way, the lease ends when it was to end.
	err := ErrUnconfirmed
	if !h.doubt && until(h.runsOut) <= 0 {
		err = fmt.Errorf("%w: the lease ran out while the process was paused", ErrLost)
	}
	h.mu.Unlock()
	h.lose(err)
}

// extend trusts the lease for what a request sent at asked has confirmed. A
// confirmation that comes after trust has ended does not bring it back.
func (h *Held) extend(asked time.Time, remaining time.Duration) (trusted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || until(h.until) <= 0 {
		return false
	}
	h.doubt, h.failures = false, 0
	if ends := asked.Add(remaining); ends.After(h.runsOut) {
		h.runsOut = ends
		h.until = ends.Add(-h.client.margin())
	}
	return true
}

// lose ends trust because the lock is lost. Only the first call counts.
func (h *Held) lose(err error) {
	if h.distrust(err, true) {
		h.client.tell(h.ctx, Event{Kind: Lost, Lock: h.name, Token: h.Token(), Err: err})
	}
}

// distrust ends trust, and with it the work and the renewals. It reports whether
// it was the first to do so.
func (h *Held) distrust(err error, lost bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return false
	}
	h.err = err
	h.look.Stop()
	h.next.Stop()
	if h.abort != nil {
		h.abort()
	}
	if lost {
		close(h.lost) // first: who sees the context end may ask why
	}
	h.end(err)
	return true
}

// until is how long it is until t, by the clock that says less: the monotonic
// clock stands still while the machine is suspended, and the wall clock may be
// set back.
func until(t time.Time) time.Duration {
	return min(time.Until(t), t.Round(0).Sub(wall()))
}

// wall reads the wall clock; a test sets it.
var wall = func() time.Time { return time.Now().Round(0) }
