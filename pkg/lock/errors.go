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
	// or went to someone else.
	ErrLost = fmt.Errorf("%w any more", ErrNotHeld)

	// ErrUnconfirmed means that the lease could not be renewed in time, because
	// the service did not answer or could not. Nobody may have the lock yet.
	ErrUnconfirmed = fmt.Errorf("%w for certain", ErrNotHeld)

	// ErrWaitTimeout means that the lock was held by others until the deadline
	// of the context. Nothing was granted. It matches
	// [context.DeadlineExceeded]; the detail is a [WaitError].
	ErrWaitTimeout = errors.New("the lock did not become free in time")

	// ErrUnavailable means that the service gave no usable answer until the
	// deadline of the context. If the last request was carried out all the
	// same, its lease is released in the background, or runs out.
	ErrUnavailable = lease.ErrUnavailable

	// ErrMisconfigured means that someone has to repair the service, or the
	// address of it. Trying again is of no use.
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

// join is errors.Join for two, on one line.
func join(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w (%w)", a, b)
}
