package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// serverWait is how long the service is asked to wait in one request, a third of
// what API Gateway allows.
const serverWait = 10 * time.Second

// request returns what is asked for to get the lock, without a request id. What
// no deployment allows is refused here: half of it would be obeyed silently.
func (c *Client) request(lock string) (lease.AcquireRequest, error) {
	n, err := lease.ParseName(lock)
	if err != nil {
		return lease.AcquireRequest{}, err
	}
	q := lease.AcquireRequest{
		Name:      n,
		TTL:       c.ttl(),
		Holder:    cmp.Or(c.Holder, process()),
		Metadata:  c.Metadata,
		MinHold:   c.MinHold,
		LockDelay: c.LockDelay,
	}
	if m := c.margin(); m < 0 || m >= c.ttl()/2 {
		return q, &lease.InvalidError{Field: "margin", Reason: fmt.Sprintf("is %v, want less than half of the TTL, %v", m, c.ttl())}
	}
	return q, q.Validate(lease.Rules{MaxTTL: 24 * time.Hour})
}

// acquire asks until the lock is granted. One request id serves all tries, so
// that a grant whose answer was lost is found again. The lock is held on behalf
// of parent.
func (c *Client) acquire(ctx, parent context.Context, lock string, wait bool) (_ *Held, err error) {
	q, err := c.request(lock)
	if err != nil {
		return nil, err
	}
	q.RequestID = lease.NewID()
	started := time.Now()
	var last error          // why it was not granted, as far as is known
	var doubt bool          // this request id may have been granted it all the same
	var granted lease.Lease // it was, and the lease could not be used
	defer func() {
		if err != nil && doubt && !final(err) {
			go c.giveBack(context.WithoutCancel(ctx), q, granted)
		}
	}()
	for failures := 0; ; {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, last)
		}
		q.Wait = 0
		if wait && !doubt {
			q.Wait = waitWithin(ctx)
		}
		asked := time.Now()
		l, err := c.ask(ctx, q, doubt)
		var pause time.Duration
		switch {
		case err == nil && c.usable(l, asked, q.Wait) && ctx.Err() == nil:
			c.tellGranted(parent, lock, l, time.Since(started))
			return c.hold(parent, lock, l, asked), nil
		case err == nil:
			// Trust counts from before the request, and that was too long ago. The
			// same request again returns the same lease, without a wait. If that has
			// too little left as well, it is left to run out.
			doubt, granted = true, l
			if q.Wait == 0 {
				failures++
				pause = backoff(failures)
			}
		case errors.Is(err, errNotAwaited):
			doubt = false // ask sees to it
			if last == nil {
				last = err
			}
		default:
			c.tell(parent, Event{Kind: Refused, Lock: lock, Err: err})
			switch {
			case errors.Is(err, ErrHeld):
				doubt, granted = false, lease.Lease{}
				last, failures = err, 0
				if !wait {
					return nil, err
				}
				pause = max(jitter(retryAfter(err)), leastPause)
			case errors.Is(err, lease.ErrRequestSpent), errors.Is(err, lease.ErrRequestConflict):
				q.RequestID = lease.NewID()
				doubt, granted = false, lease.Lease{}
				failures++
				pause = backoff(failures)
			case final(err):
				return nil, err
			case !wait && !doubt && notGranted(err):
				return nil, unavailable(err)
			default:
				doubt = doubt || !notGranted(err)
				last = err
				failures++
				pause = pauseAfter(err, failures)
			}
		}
		sleep(ctx, pause)
	}
}

// usable reports whether enough of a lease is left to begin with it: it was
// granted at some time between the request and now.
func (c *Client) usable(l lease.Lease, asked time.Time, wait time.Duration) bool {
	took := -until(asked)
	return took < l.Remaining-c.margin() && (wait == 0 || took < l.TTL/3)
}

// waitWithin is how long the service may wait so that its answer still comes
// before ctx ends.
func waitWithin(ctx context.Context) time.Duration {
	wait := serverWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-200*time.Millisecond)
	}
	return max(wait, 0).Truncate(time.Millisecond)
}

// gaveUp is the error for a ctx that ended before the lock was granted.
func gaveUp(ctx context.Context, last error) error {
	var held *lease.HeldError
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded), last == nil:
		return ended(ctx)
	case errors.As(last, &held):
		return &WaitError{Held: held}
	}
	return unavailable(fmt.Errorf("%w: %w", ended(ctx), last))
}

// ended is why ctx has ended. Whatever the cause, it matches what ctx.Err says.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
