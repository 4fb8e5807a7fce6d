package fence

import (
	"errors"
	"fmt"
)

// Maybe is what a refusal says unless the guard knows better. A client, a proxy
// or a network may send a change twice; where the second is refused because a
// newer holder has come in between, the first may have been applied before.
const Maybe = "this or an earlier attempt may have been applied"

// ErrStale means that storage refused a token because it has seen a larger one
// of the same lock: the holder has been replaced and must stop. The detail is a
// [StaleError], which also says whether nothing was changed.
var ErrStale = errors.New("stale fencing token")

// A StaleError is the detail behind [ErrStale].
type StaleError struct {
	Lock     string // full name, "namespace/lock"
	Token    Token  // what was sent
	Seen     Token  // what the storage had seen, which is larger
	Resource string // what was to be changed, in the storage's own terms

	// NotApplied says that nothing was changed, nor will be. Without it an earlier
	// attempt at the same change may have been applied, see [Maybe].
	NotApplied bool

	observed uint32
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: %s has seen %d of %q, and was sent %d%s",
		ErrStale, e.Resource, e.Seen, e.Lock, e.Token, applied(e.NotApplied))
}

func applied(not bool) string {
	if not {
		return ""
	}
	return "; " + Maybe
}

// Is makes errors.Is(err, ErrStale) true for every StaleError.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// ErrOtherLock means that storage refused a token because what it would change
// belongs to another lock. Tokens of different locks cannot be compared. The
// detail is an [OtherLockError].
var ErrOtherLock = errors.New("guarded by another lock")

// An OtherLockError is the detail behind [ErrOtherLock].
type OtherLockError struct {
	Lock     string // whose token was sent
	Bound    string // whose tokens the resource takes
	Resource string

	NotApplied bool // as in [StaleError]

	observed uint32
}

func (e *OtherLockError) Error() string {
	return fmt.Sprintf("%s is %v, %q, and was sent a token of %q%s",
		e.Resource, ErrOtherLock, e.Bound, e.Lock, applied(e.NotApplied))
}

// Is makes errors.Is(err, ErrOtherLock) true for every OtherLockError.
func (e *OtherLockError) Is(target error) bool { return target == ErrOtherLock }

// ErrInvalid means that a token or a name can be no one's: a token of zero,
// negative or above [Max], or a name that [CheckLock] refuses. Nothing was
// changed.
var ErrInvalid = errors.New("invalid fencing token")

// ErrNotApplied means that a change failed for another reason than its token,
// that nothing was changed, and that it will not happen later either. A guard
// wraps it around that reason. What matches neither this nor a refusal leaves
// the outcome unknown.
var ErrNotApplied = errors.New("not applied")

// Refused reports whether err is a decision of a guard: it matches [ErrStale],
// [ErrOtherLock] or [ErrInvalid].
func Refused(err error) bool {
	return errors.Is(err, ErrStale) || errors.Is(err, ErrOtherLock) || errors.Is(err, ErrInvalid)
}

// Settled returns a refusal of which the guard knows that nothing was changed,
// nor will be. It returns any other error as it is.
func Settled(err error) error {
	var stale *StaleError
	var other *OtherLockError
	switch {
	case errors.As(err, &stale):
		stale.NotApplied = true
	case errors.As(err, &other):
		other.NotApplied = true
	}
	return err
}
