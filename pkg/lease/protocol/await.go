package protocol

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

const (
	// pollInterval is how often a waiter looks, on average. A lock changes hands
	// about half of it after a release.
	pollInterval = 200 * time.Millisecond

	// waitMargin is what a waiter leaves of the time that its caller allows, so
	// that the caller still gets the answer.
	waitMargin = 500 * time.Millisecond

	// maxPause is how long a waiter leaves a lock alone at most, whatever the
	// store asks for.
	maxPause = 5 * time.Second
)

// Await acquires a lock, waiting for it up to wait, and less if the context
// ends earlier. It calls acquire once; while that is refused with [lease.ErrHeld] it
// polls with look, which fails in the same way while the lock is not available,
// and calls acquire again when it is. So waiters only read: failed writes would
// take the capacity that the holder needs to renew.
//
// Stores call it; others set [lease.AcquireRequest.Wait].
func Await(ctx context.Context, wait time.Duration, acquire func(context.Context) (lease.Lease, error), look func(context.Context) error) (lease.Lease, error) {
	end := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-waitMargin).Before(end) {
		end = deadline.Add(-waitMargin)
	}
	l, err := acquire(ctx)
	for lease.Classify(err).Wait && time.Now().Before(end) {
		left := time.Until(end)
		if asked(err) > left {
			break // the caller is told for how long to leave the store alone
		}
		if err := sleep(ctx, min(pause(err), left)); err != nil {
			return lease.Lease{}, err
		}
		if err = look(ctx); err == nil {
			l, err = acquire(ctx)
		}
	}
	return l, err
}

// pause is how long to wait after err: half to one and a half intervals, so
// that waiters spread out, and no longer than the lease lives. A store that asks
// for more time gets it: those who ask at once are why it does.
func pause(err error) time.Duration {
	d := pollInterval/2 + rand.N(pollInterval)
	var held *lease.HeldError
	if errors.As(err, &held) {
		d = min(d, held.Remaining+rand.N(pollInterval/10))
	}
	if after := asked(err); after > 0 {
		d = max(d, after+rand.N(pollInterval/2))
	}
	return d
}

// asked is for how long a store that failed wants to be left alone.
func asked(err error) time.Duration {
	var retry *lease.RetryError
	if errors.As(err, &retry) {
		return min(retry.After, maxPause)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
