package fence

import (
	"errors"
	"fmt"
)

// ErrStale means that storage refused a token because it has seen a larger one
// of the same lock: the holder has been replaced and must stop. Nothing was
// changed. The detail is a [StaleError].
var ErrStale = errors.New("stale fencing token")

// A StaleError is the detail behind [ErrStale].
type StaleError struct {
	Lock     string // full name, "namespace/lock"
	Token    Token  // what was sent
	Seen     Token  // what the storage had seen, which is larger
	Resource string // what was to be changed, in the storage's own terms
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: %s has seen %d of %q, and was sent %d", ErrStale, e.Resource, e.Seen, e.Lock, e.Token)
}

// Is makes errors.Is(err, ErrStale) true for every StaleError.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// ErrOtherLock means that storage refused a token because what it would change
// belongs to another lock. Tokens of different locks cannot be compared. Nothing
// was changed. The detail is an [OtherLockError].
var ErrOtherLock = errors.New("guarded by another lock")

// An OtherLockError is the detail behind [ErrOtherLock].
type OtherLockError struct {
	Lock     string // whose token was sent
	Bound    string // whose tokens the resource takes
	Resource string
}

func (e *OtherLockError) Error() string {
	return fmt.Sprintf("%s is %v, %q, and was sent a token of %q", e.Resource, ErrOtherLock, e.Bound, e.Lock)
}

// Is makes errors.Is(err, ErrOtherLock) true for every OtherLockError.
func (e *OtherLockError) Is(target error) bool { return target == ErrOtherLock }

// ErrInvalid means that a token or a lock's name can be no one's: zero, negative
// or above [Max], or an empty name. Nothing was changed.
var ErrInvalid = errors.New("invalid fencing token")

// Check returns an error that matches [ErrInvalid] unless t is valid and lock is
// not empty. Guards call it first.
func Check(lock string, t Token) error {
	switch {
	case lock == "":
		return fmt.Errorf("%w: the lock has no name", ErrInvalid)
	case !t.Valid():
		return fmt.Errorf("%w: %d, want 1 to %d", ErrInvalid, t, Max)
	}
	return nil
}
