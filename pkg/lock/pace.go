package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// final reports whether asking again is of no use.
func final(err error) bool {
	return errors.Is(err, lease.ErrInvalid) || errors.Is(err, lease.ErrForbidden) || errors.Is(err, ErrMisconfigured)
}

// settled reports whether a failure says that no try with this request id holds
// the lock, or that there is no way to learn it.
func settled(err error) bool {
	return errors.Is(err, ErrHeld) || errors.Is(err, lease.ErrRequestSpent) || errors.Is(err, lease.ErrRequestConflict) || final(err)
}

// notGranted reports whether a failure says that nothing was changed. An earlier
// try may have been granted all the same.
func notGranted(err error) bool {
	return errors.Is(err, lease.ErrThrottled) || errors.Is(err, ErrUnavailable) ||
		errors.Is(err, lease.ErrClockSkew) || errors.Is(err, lease.ErrQuarantine)
}

// unavailable makes err match [ErrUnavailable].
func unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// leastPause keeps a service that says "held, but not for long" from being asked
// as fast as it can answer.
const leastPause = 10 * time.Millisecond

// retryAfter is how long the service asks to wait, or 0.
func retryAfter(err error) time.Duration {
	var held *lease.HeldError
	var retry *lease.RetryError
	var after time.Duration
	switch {
	case errors.As(err, &held):
		after = held.RetryAfter()
	case errors.As(err, &retry):
		after = retry.After
	}
	return max(after, 0)
}

// pauseAfter is how long to wait after a number of failures in a row, of which
// err is the last: what the service asks for or somewhat more.
func pauseAfter(err error, failures int) time.Duration {
	after := retryAfter(err)
	return max(after+rand.N(after/4+1), backoff(failures))
}

// backoff is how long to wait after a number of failures in a row: about 50 ms,
// doubled each time, up to 2 s.
func backoff(failures int) time.Duration {
	return jitter(min(50*time.Millisecond<<min(failures-1, 10), 2*time.Second))
}

// jitter is half of d to d, so that many callers spread out.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
