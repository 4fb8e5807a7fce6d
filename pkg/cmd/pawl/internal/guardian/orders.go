package guardian

import (
	"errors"
	"time"
)

// Argument is the first argument of the process that runs [Guard].
const Argument = "guardian-of-a-command"

// ErrDied means that the guarding process ended without saying how the command did.
var ErrDied = errors.New("the process that guards the command has died")

// An order goes from the keeper of a lock to the guardian, as one line of JSON.
type order struct {
	Kill   int64 `json:"kill,omitempty"`   // when SIGKILL is due, in ns since boot, suspends included
	Grace  int64 `json:"grace,omitempty"`  // for how many ns before that SIGTERM was sent
	Signal int   `json:"signal,omitempty"` // to be passed on to the command's group
}

// A report goes back, once.
type report struct {
	Code  int    `json:"code"`            // the exit status, or 128 + the signal
	Ended bool   `json:"ended,omitempty"` // the command was ended by the guardian
	Error string `json:"error,omitempty"` // the command could not be started
}

// An Outcome is how a command ended.
type Outcome struct {
	Code  int    // the exit status, or 128 + the number of a signal
	Ended bool   // the guardian ended it, since the deadline was near
	Error string // it could not be started; Code is 126 or 127
}

// Remaining returns how long it is until t, by the clock that says less: the
// monotonic one stands still while the machine is suspended.
func remaining(t time.Time) time.Duration {
	now := time.Now()
	return min(t.Sub(now), t.Round(0).Sub(now.Round(0)))
}
