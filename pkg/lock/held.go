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
// released or lost. All locks of a client share one timer for that; there is a
// goroutine only while a renewal is under way. Its methods are safe for
// concurrent use.
type Held struct {
	client *Client
	name   string
	lease  lease.Lease

	ctx  context.Context // of the work
	end  context.CancelCauseFunc
	lost chan struct{}

	mu      sync.Mutex
	asked   moment    // when the request was sent that was confirmed last
	until   time.Time // trusted until then
	runsOut time.Time // the lease ends then, by what was confirmed
	doubt   bool      // a renewal was sent since, and not confirmed
	failed  error     // why the last renewal was not confirmed, if it was not
	err     error     // why it is not trusted any more

	deciding chan struct{} // closed when it is decided what a step of the wall clock means
	decideBy time.Time

	look     entry              // in the agenda of the keeper
	next     entry              // renewal
	failures int                // of renewals, in a row
	renewing chan struct{}      // closed when the renewal under way has ended
	abort    context.CancelFunc // ends the renewal under way

	releasing chan struct{} // has room for one, who releases
	over      bool          // the outcome of the release is known
	outcome   error         // nil, or ErrLost
	unknown   bool          // an earlier release may have been carried out
}

// decision is how long it may take to find out what a step of the wall clock means.
const decision = time.Second

// errPaused is the loss of a lease that ran out unnoticed. Nobody may have taken the
// lock since.
var errPaused = fmt.Errorf("%w: it ran out while the process was paused", ErrLost)

// errReleased is the cause of the end of a context by a release.
var errReleased = fmt.Errorf("%w: it was released", ErrNotHeld)

// hold starts to keep a lease that was granted by a request sent at asked.
func (c *Client) hold(parent context.Context, name string, l lease.Lease, asked moment) *Held {
	h := &Held{client: c, name: name, lease: l, lost: make(chan struct{}), releasing: make(chan struct{}, 1)}
	h.look.held, h.next.held = h, h
	ctx := context.WithValue(fence.NewContext(parent, fence.Holding{Lock: name, Token: l.Token}), under{name}, h)
	h.ctx, h.end = context.WithCancelCause(ctx)
	h.asked = asked
	h.runsOut = asked.Add(min(l.Remaining, c.ttl()))
	h.until = h.runsOut.Add(-c.margin())
	h.mu.Lock() // the timer may go off at once
	defer h.mu.Unlock()
	h.keeper().look(h, h.until)
	h.keeper().next(h, asked.Add(interval(c.ttl())), h.until)
	return h
}

func (h *Held) keeper() *keeper { return &h.client.own().keeper }

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
// right after the process was paused it knows before the context does. Right
// after the wall clock has stepped forward it takes a second at most, for the
// renewal that decides.
func (h *Held) Err() error {
	for {
		if tell := h.expire(); tell != nil {
			tell()
		}
		h.mu.Lock()
		err, deciding, end := h.err, h.deciding, h.decideBy
		h.mu.Unlock()
		if deciding == nil {
			return err
		}
		select {
		case <-deciding:
		case <-time.After(time.Until(end)):
		}
	}
}

// lookAgain ends trust if its time is over, and has it looked at again if not.
func (h *Held) lookAgain() (tell func()) {
	tell = h.expire()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
	case h.deciding != nil:
		h.keeper().look(h, h.decideBy)
	default:
		h.keeper().look(h, h.until)
	}
	return tell
}

// expire ends trust if its time is over, and returns what tells of it then.
func (h *Held) expire() (tell func()) {
	h.mu.Lock()
	if h.err != nil || h.asked.until(h.until) > 0 || h.stepped() {
		h.mu.Unlock()
		return nil
	}
	// Without a renewal under way, the lease ends when it was to end.
	err := unconfirmed(h.failed)
	if !h.doubt && h.asked.awake(h.runsOut) <= 0 {
		err = errPaused
	}
	h.mu.Unlock()
	return h.lose(err)
}

// stepped reports whether only the wall clock says that trust has ended, so that
// the next renewal decides. It must come soon: what the wall clock shows may be
// time that has passed, if the machine is a virtual one that was stopped.
func (h *Held) stepped() bool {
	if h.asked.awake(h.until) <= 0 {
		return false
	}
	if h.deciding == nil {
		h.deciding = make(chan struct{})
		h.decideBy = time.Now().Add(min(attemptTime(h.client.ttl()), decision))
		if h.renewing == nil {
			h.keeper().next(h, time.Now(), h.until)
		}
	}
	return time.Until(h.decideBy) > 0
}

// extend trusts the lease for what a request sent at asked has confirmed. A
// confirmation that comes after trust has ended does not bring it back.
func (h *Held) extend(asked moment, remaining time.Duration) (trusted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || h.asked.until(h.until) <= 0 && !h.stepped() {
		return false
	}
	runsOut := asked.Add(min(remaining, h.client.ttl()))
	ends := runsOut.Add(-h.client.margin())
	if h.deciding != nil {
		if asked.until(ends) <= 0 {
			return false // it was sent before the step, and says nothing of it
		}
		close(h.deciding)
		h.deciding = nil
	}
	h.doubt, h.failed, h.failures = false, nil, 0
	if runsOut.After(h.runsOut) || h.asked.until(h.until) <= 0 {
		h.asked, h.runsOut, h.until = asked, runsOut, ends
	}
	return true
}

// lose ends trust because the lock is lost, and returns what tells of it. Only
// the first call counts.
func (h *Held) lose(err error) (tell func()) {
	if !h.distrust(err, true) {
		return nil
	}
	return func() { h.client.tell(h.ctx, Event{Kind: Lost, Lock: h.name, Token: h.Token(), Err: err}) }
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
	h.keeper().drop(h)
	if h.deciding != nil {
		close(h.deciding)
		h.deciding = nil
	}
	if h.abort != nil {
		h.abort()
	}
	if lost {
		close(h.lost) // first: who sees the context end may ask why
	}
	h.end(err)
	return true
}
