package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Refusals: the service looked and said no. Nothing was changed.
var (
	// ErrHeld means that someone holds the lock, or that it was held so
	// recently that its minimum hold or lock delay still runs. The detail is a
	// [HeldError].
	ErrHeld = errors.New("the lock is held")

	// ErrLost means that the lease is over for good: it was released, broken,
	// or ran out and went to someone else. The detail is a [LostError].
	ErrLost = errors.New("the lease is lost")

	// ErrExpired means that the lease ran out and nobody has taken the lock
	// since. It is over all the same, so it matches ErrLost too.
	ErrExpired = fmt.Errorf("the lease has expired: %w", ErrLost)

	// ErrRequestSpent means that nothing is granted to this request id any more:
	// its grant is over, or it was withdrawn. Acquire again, with a new one.
	ErrRequestSpent = errors.New("nothing is granted to this request id any more")

	// ErrRequestConflict means that someone else used this request id.
	ErrRequestConflict = errors.New("the request id was used by another caller")

	// ErrTokenChanged means that the lock is held under another token than the
	// one to be broken. The detail is a [TokenChangedError].
	ErrTokenChanged = errors.New("the lock is held under another token")

	// ErrInvalid means that the request can never succeed as it is. The detail
	// is an [InvalidError].
	ErrInvalid = errors.New("invalid request")

	// ErrForbidden means that the caller may not do this, or is not known. The
	// detail is a [ForbiddenError] unless a gateway refused.
	ErrForbidden = errors.New("forbidden")
)

// Failures. All but ErrOutcomeUnknown say that nothing was changed. Where
// waiting helps, the detail is a [RetryError].
var (
	// ErrThrottled means that the store or the gateway takes no more requests
	// just now.
	ErrThrottled = errors.New("throttled")

	// ErrUnavailable means that the service could not decide just now.
	ErrUnavailable = errors.New("unavailable")

	// ErrTooManyWithdrawn means that a request was not withdrawn: as many of its
	// lock as are remembered were withdrawn within [WithdrawnFor]. The request holds
	// no lease now, and may be granted one if it is still under way.
	ErrTooManyWithdrawn = errors.New("too many requests of this lock were withdrawn just now")

	// ErrClockSkew means that the clock of a host is too far off to grant.
	ErrClockSkew = errors.New("a clock is too far off")

	// ErrQuarantine means that the store was restored from a backup and leases
	// that the backup has forgotten may still be held.
	ErrQuarantine = errors.New("nothing is granted for a while after a restore")

	// ErrMisconfigured means that someone has to repair the deployment: a
	// missing table, denied access, a wrong address.
	ErrMisconfigured = errors.New("the service is misconfigured")

	// ErrOutcomeUnknown means that the change may have been made. Repeat the
	// same request (acquire: with the same request id) to learn which.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
)

// A HeldError is the detail behind [ErrHeld].
type HeldError struct {
	Holder    string        // who holds the lock, or held it last
	Token     fence.Token   // of its lease
	Remaining time.Duration // until the lock can be granted, unless it is renewed
}

// maxRetryAfter bounds how long a refused caller is told to wait: the lock may
// be released at any moment.
const maxRetryAfter = time.Second

// RetryAfter is how long to wait before asking again.
func (e *HeldError) RetryAfter() time.Duration { return min(e.Remaining, maxRetryAfter) }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%v by %q for another %v", ErrHeld, e.Holder, e.Remaining)
}

// Is makes errors.Is(err, ErrHeld) true for every HeldError.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// A LostError is the detail behind [ErrLost], for whoever counts the holders that
// came back late. It does not cross a network.
type LostError struct {
	// Known says that the record tells of such a lease. Anyone can make up the
	// id and the token of a lease that never was.
	Known bool
}

func (e *LostError) Error() string { return ErrLost.Error() }

// Is makes errors.Is(err, ErrLost) true for every LostError.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// KnownLost reports whether err, of a renewal or a release, tells of a lease
// that there was: it has expired, or is lost by the proof of the record.
func KnownLost(err error) bool {
	var lost *LostError
	return errors.Is(err, ErrExpired) || errors.As(err, &lost) && lost.Known
}

// A TokenChangedError is the detail behind [ErrTokenChanged].
type TokenChangedError struct {
	Token fence.Token // of the lease that holds the lock now
}

func (e *TokenChangedError) Error() string { return fmt.Sprintf("%v: %d", ErrTokenChanged, e.Token) }

// Is makes errors.Is(err, ErrTokenChanged) true for every TokenChangedError.
func (e *TokenChangedError) Is(target error) bool { return target == ErrTokenChanged }

// A ForbiddenError is the detail behind [ErrForbidden].
type ForbiddenError struct {
	Reason string // what the caller lacks
}

func (e *ForbiddenError) Error() string { return fmt.Sprintf("%v: %s", ErrForbidden, e.Reason) }

// Is makes errors.Is(err, ErrForbidden) true for every ForbiddenError.
func (e *ForbiddenError) Is(target error) bool { return target == ErrForbidden }

// An InvalidError is the detail behind [ErrInvalid].
type InvalidError struct {
	Field  string // by its name in the HTTP API; empty for the request as a whole
	Reason string
}

func (e *InvalidError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Is makes errors.Is(err, ErrInvalid) true for every InvalidError.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// A RetryError is a failure that waiting may cure.
type RetryError struct {
	Err   error         // matches one of the failures above
	After time.Duration // how long to wait before asking again
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }
