package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// Errors of this package, and what can be concluded from each. Those of the
// context and of package lease are passed on as they are.
var (
	// ErrHeld means that someone else holds the lock, or that it cannot be
	// granted yet. Nothing was granted. The detail is a [lease.HeldError].
	ErrHeld = lease.ErrHeld

	// ErrNotHeld is what [ErrLost] and [ErrUnconfirmed] have in common: the work
	// must stop, and its writes may be refused as stale.
	ErrNotHeld = errors.New("the lock is not held")

	// ErrLost means that the lease is over for certain: it ran out, was broken,
	// or went to someone else. It matches [lease.ErrLost].
	ErrLost = fmt.Errorf("%w: %w", ErrNotHeld, lease.ErrLost)

	// ErrUnconfirmed means that the lease could not be confirmed in time, since
	// the service did not answer or could not. It may still be alive, and nobody
	// else have the lock. The error has why the last renewal failed.
	ErrUnconfirmed = fmt.Errorf("%w: the lease was not confirmed in time", ErrNotHeld)

	// ErrWaitTimeout means that the lock was held by others until the deadline
	// of the context. Nothing was granted. It matches [ErrHeld] and
	// [context.DeadlineExceeded]; the detail is a [WaitError].
	ErrWaitTimeout = errors.New("the lock did not become free in time")

	// ErrUndecided means that the lock was neither granted nor found to be held:
	// there was no usable answer in time. The error has what was wrong, by its
	// name in package lease. Should a request have been carried out, what it was
	// granted is released in the background; see [Client.Settle].
	ErrUndecided = errors.New("the lock was neither granted nor refused")

	// ErrMisconfigured means that someone has to repair the service, or the
	// address of it.
	ErrMisconfigured = lease.ErrMisconfigured
)

// A WaitError is the detail behind [ErrWaitTimeout].
type WaitError struct {
	Held *lease.HeldError // the last refusal
}

func (e *WaitError) Error() string { return fmt.Sprintf("%v: %v", ErrWaitTimeout, e.Held) }

// Is makes errors.Is true for [ErrWaitTimeout] and [context.DeadlineExceeded].
func (e *WaitError) Is(target error) bool {
	return target == ErrWaitTimeout || target == context.DeadlineExceeded
}

// Unwrap returns the last refusal.
func (e *WaitError) Unwrap() error { return e.Held }

// undecided makes err match [ErrUndecided].
func undecided(err error) error { return fmt.Errorf("%w: %w", ErrUndecided, err) }

// unconfirmed is [ErrUnconfirmed] with why the last renewal failed, if one did.
func unconfirmed(why error) error {
	if why == nil {
		return ErrUnconfirmed
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, cause{why})
}

// A cause matches what an error matches, but for the end of its context: that was
// the context of one request, and not of the caller.
type cause struct{ err error }

func (c cause) Error() string { return c.err.Error() }

func (c cause) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(c.err, target)
}

func (c cause) As(target any) bool { return errors.As(c.err, target) }

// join is errors.Join for two, on one line.
func join(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w (%w)", a, b)
}
