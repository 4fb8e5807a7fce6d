package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Service grants, extends and ends leases. Every method is safe for
// concurrent use and may be repeated.
//
// What was refused fails with [ErrHeld], [ErrLost] and the other refusals, each
// method with those that it names, and with [ErrInvalid] for a request that can
// never succeed. The failures listed there say that nothing was changed. After
// [ErrOutcomeUnknown], and after any error that is none of these, the change
// may have been made.
type Service interface {
	// Acquire grants the lock, or fails with [ErrHeld]. Repeated with its
	// request id it returns the same lease for as long as that is held, then, or
	// when the request was withdrawn, [ErrRequestSpent]; [ErrRequestConflict] if
	// another caller used the id.
	Acquire(context.Context, AcquireRequest) (Lease, error)

	// Renew extends the lease to the TTL from now; it never shortens it. It
	// fails with [ErrLost] when the lease is over.
	Renew(context.Context, RenewRequest) (Lease, error)

	// Release ends the lease. Released before is no error; [ErrLost] means that
	// it ended in another way. Of holders, the state names that of this lease
	// only.
	//
	// By request id, it ends the lease that the request holds, if there is one, and
	// withdraws the request: it holds nothing then, and what of it is still waiting,
	// or under way, is granted nothing. It may have been granted, and released,
	// before. [ErrRequestConflict] means that another caller used the id.
	Release(context.Context, ReleaseRequest) (State, error)

	// Break ends the lease that has the given token, whoever holds it, and uses
	// up a token: the old holder is fenced out of guarded storage as soon as a
	// guard has seen the new one, and not before. It fails with
	// [ErrTokenChanged] when another lease holds the lock.
	Break(context.Context, BreakRequest) (Broken, error)

	// Get returns the state of the lock, as of now.
	Get(context.Context, Name) (State, error)
}

// An AcquireRequest asks for a lock.
type AcquireRequest struct {
	Name Name

	// TTL is how long the lease lives unless renewed: 1 s to [protocol.Rules.MaxTTL],
	// in whole milliseconds. Required.
	TTL time.Duration

	// Holder is free text that names who will hold the lease, up to 256 bytes.
	// It identifies nothing: two leases with the same holder are two leases.
	Holder string

	// RequestID makes a repeat harmless: 22 to 64 characters of A-Z, a-z, 0-9,
	// hyphen and underscore, unpredictable and used for one acquire only. Empty
	// means a new one, and that a repeat is a new acquire.
	RequestID string

	// Wait is how long to wait for a lock that is held, up to 20 s.
	Wait time.Duration

	// Metadata is any text that others may read while the lease is held, up to
	// 2 KiB.
	Metadata string

	// MinHold is for how long from the grant on the lock is granted to nobody
	// else, even when it is released earlier. At most the TTL.
	MinHold time.Duration

	// LockDelay is for how long a lease that ran out, instead of being
	// released, keeps the lock from being granted, up to [protocol.Rules.MaxLockDelay].
	LockDelay time.Duration
}

// A RenewRequest names the lease by what its grant returned.
type RenewRequest struct {
	Name    Name
	LeaseID string
	Token   fence.Token

	// TTL is from now on: 1 s to 24 h. What is over [protocol.Rules.MaxTTL] is granted as
	// that. Required.
	TTL time.Duration
}

// A ReleaseRequest names the lease by what its grant returned, or by the request
// that may have been granted one.
type ReleaseRequest struct {
	Name Name

	// LeaseID and Token are what the grant returned.
	LeaseID string
	Token   fence.Token

	// RequestID, instead, is that of an acquire that its caller has given up, for
	// the principal of that acquire. It is remembered for a minute from the release
	// on, and not much longer: nothing is sent for a call that a gateway received
	// more than 30 s ago, and what was sent before has the rest of the minute to
	// arrive. Sent again or arriving later than that, the request may take a free
	// lock, until that lease runs out. A repeat of the release may find 45 s left.
	RequestID string
}

// WithdrawnFor is how long a request that was withdrawn is remembered. It is longer
// than anything of a call can be under way.
const WithdrawnFor = time.Minute

// A BreakRequest names the lease by the token that was observed, so that a
// newer lease is not hit.
type BreakRequest struct {
	Name   Name
	Token  fence.Token
	Reason string // for the log, 1 to 256 bytes
}

// A Lease is one grant of a lock, for a bounded time.
type Lease struct {
	Name       Name
	Token      fence.Token
	ID         string // the holder's secret: needed to renew or release
	Holder     string
	TTL        time.Duration
	AcquiredAt time.Time
	ExpiresAt  time.Time

	// Remaining is how long the lease still lives. A holder that counts it from
	// before it sent the request stops no later than the service does.
	Remaining time.Duration

	// Repeated says that the lease had been granted to this request id before.
	Repeated bool

	// Abandoned is the lease that this grant took over because it ran out, and
	// nil after a release: its holder may not have finished.
	Abandoned *Abandoned
}

// String describes l without its id, so that a lease that is printed gives no
// secret away.
func (l Lease) String() string {
	return fmt.Sprintf("%v: token %d, %q, until %s", l.Name, l.Token, l.Holder, l.ExpiresAt.Format(time.RFC3339Nano))
}

// Abandoned describes a lease that ran out instead of being released.
type Abandoned struct {
	Holder    string
	Token     fence.Token
	ExpiredAt time.Time
}

// A State is what anyone may know of a lock. It never has the lease id.
type State struct {
	Name   Name
	Held   bool
	Token  fence.Token // of the last grant; 0 when nothing is recorded: never granted, or retired
	Holder string      // who holds the lock, or held it last

	// While held.
	Metadata   string
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Remaining  time.Duration

	// AvailableAt is when the lock can be granted at the latest, unless it is
	// renewed. Zero means that it can be now.
	AvailableAt time.Time

	// Abandoned is the last lease, if it ran out and nobody took over.
	Abandoned *Abandoned

	// Ended is how the release that returned this state found its lease. It does
	// not cross a network.
	Ended Ending
}

// String describes s in one line.
func (s State) String() string {
	if s.Held {
		return fmt.Sprintf("%v: held, token %d, %q, until %s", s.Name, s.Token, s.Holder, s.ExpiresAt.Format(time.RFC3339Nano))
	}
	return fmt.Sprintf("%v: free, token %d, %q, available at %s", s.Name, s.Token, s.Holder, s.AvailableAt.Format(time.RFC3339Nano))
}

// An Ending is how a release found the lease that it was to end. The zero value
// says nothing.
type Ending int

const (
	Released       Ending = iota + 1 // it held the lock
	ReleasedBefore                   // it had been released, maybe by an attempt of the same call
	ReleasedLate                     // it had run out, and nobody had taken the lock: its TTL was too short
	Withdrawn                        // by request id: the request held none, and is granted none
)

// Broken is the state of a lock after a break.
type Broken struct {
	State

	// AlreadyFree says that nobody held the lock, so that no token was used up:
	// a holder that released has its last writes accepted as before.
	AlreadyFree bool
}
