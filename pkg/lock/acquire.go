package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// serverWait is how long the service is asked to wait in one request, a third of
// what API Gateway allows.
const serverWait = 10 * time.Second

// An asking is how a lock is asked for.
type asking struct {
	waits bool // for a lock that is held

	// answered says that the service has had an answer of its own. What looks
	// like a deployment that is wrong is taken to pass from then on.
	answered bool
}

// acquire asks until the lock is granted. One request id serves all tries, so
// that a grant whose answer was lost is found again. The lock is held on behalf
// of parent.
func (c *Client) acquire(ctx, parent context.Context, lock string, how *asking) (*Held, error) {
	q, err := c.request(lock)
	if err != nil {
		return nil, err
	}
	if err := c.nested(ctx, lock); err != nil && how.waits {
		return nil, err
	}
	q.RequestID = lease.NewID()
	started := time.Now()
	var last error              // why it was not granted, as far as is known
	var doubt bool              // this request id may have been granted it all the same
	var granted lease.Lease     // it was, and the lease could not be used
	var roundTrip time.Duration // of the last answer
	var short error             // a lease was over by the time that its answer came
	var late fence.Token        // its token
	trouble := trouble{client: c, lock: lock, since: started}
	defer func() {
		if doubt {
			c.giveUp(parent, q, granted)
		}
	}()
	for failures := 0; ; {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, cmp.Or(short, last))
		}
		q.Wait = 0
		// The first request does not wait: it tells how long an answer takes, and
		// a short wait for a long way can be told from an outage.
		if how.waits && !doubt && errors.Is(last, ErrHeld) {
			if q.Wait = waitWithin(ctx, roundTrip); tooLate(ctx, roundTrip) {
				<-ctx.Done()
				continue
			}
		}
		asked := now()
		held := doubt
		doubt = true // until there is an answer, which a panic is not
		l, err := c.ask(ctx, q)
		took := -asked.until(asked.Time)
		verdict := lease.Classify(err)
		var pause time.Duration
		if err == nil || verdict.Wait {
			roundTrip = max(took-q.Wait, 0)
		}
		switch {
		case errors.Is(err, errNotAwaited):
			if last == nil {
				last = err
			}
			continue
		case err == nil && c.usable(l, took, q.Wait) && ctx.Err() == nil:
			doubt, how.answered = false, true
			h := c.hold(parent, lock, l, asked)
			c.tellGranted(parent, lock, l, time.Since(started))
			return h, nil
		case err == nil:
			// Trust counts from before the request, and that was too long ago. The
			// same request again returns the same lease, without a wait. If that has
			// too little left as well, it is left to run out.
			granted, late = l, l.Token
			if q.Wait == 0 {
				failures++
				pause = backoff(failures)
			}
			if q.Wait == 0 && !l.Repeated {
				short = fmt.Errorf("a TTL of %v is too short: the answer took %v", c.ttl(), took.Round(time.Millisecond))
				c.tell(parent, Event{Kind: Refused, Lock: lock, Err: short})
			}
		case errors.Is(err, ErrHeld):
			c.tell(parent, Event{Kind: Refused, Lock: lock, Err: err})
			if !by(err, late) {
				short = nil
			}
			doubt, granted, how.answered = false, lease.Lease{}, true
			trouble.over()
			if !how.waits {
				return nil, err
			}
			if errors.Is(last, ErrHeld) || held { // at first there is nothing to wait for but the service
				pause = max(jitter(verdict.After), leastPause)
			}
			last, failures = err, 0
		default:
			c.tell(parent, Event{Kind: Refused, Lock: lock, Err: err})
			doubt = held || verdict.Outcome == lease.Unknown
			failures++
			pause = pauseAfter(verdict, failures)
			switch {
			case verdict.Anew:
				q.RequestID = lease.NewID()
				doubt, granted, how.answered = false, lease.Lease{}, true
				pause = backoff(failures)
			case verdict.Repair && how.answered, verdict.Repeat:
				last = err
			default:
				return nil, ours(err)
			}
			if !how.waits && ended(ctx, pause) {
				return nil, undecided(err)
			}
		}
		trouble.tell(parent, cmp.Or(short, last))
		sleep(ctx, pause)
	}
}

// usable reports whether enough of a lease is left to begin with it: it was
// granted at some time between the request and now.
func (c *Client) usable(l lease.Lease, took, wait time.Duration) bool {
	return took < min(l.Remaining, c.ttl())-c.margin() && (wait == 0 || took < c.ttl()/3)
}

// by reports whether a lock is held under the token: by a lease of our own, which
// was left to run out.
func by(err error, token fence.Token) bool {
	var held *lease.HeldError
	return token != 0 && errors.As(err, &held) && held.Token == token
}

// waitWithin is how long the service may wait so that its answer still comes
// before ctx ends, if that takes twice as long as the last one did.
func waitWithin(ctx context.Context, roundTrip time.Duration) time.Duration {
	wait := serverWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-max(200*time.Millisecond, 2*roundTrip))
	}
	return max(wait, 0).Truncate(time.Millisecond)
}

// tooLate reports whether an answer would come after ctx has ended.
func tooLate(ctx context.Context, roundTrip time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < roundTrip+roundTrip/4
}

// ended reports whether ctx ends within d, if nothing else ends it.
func ended(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= d
}

// gaveUp is the error for a ctx that ended before the lock was granted.
func gaveUp(ctx context.Context, last error) error {
	var held *lease.HeldError
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded), last == nil:
		return reason(ctx)
	case errors.As(last, &held):
		return &WaitError{Held: held}
	}
	return undecided(fmt.Errorf("%w: %w", reason(ctx), last))
}

// reason is why ctx has ended. Whatever the cause, it matches what ctx.Err says.
func reason(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
