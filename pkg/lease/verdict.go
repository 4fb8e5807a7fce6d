package lease

import (
	"errors"
	"time"
)

// An Outcome is what is known of the change that a call was to make.
type Outcome int

// The outcomes. The zero value concludes nothing.
const (
	Unknown   Outcome = iota // it may have been made
	Unchanged                // it was not decided, and not made
	Refused                  // it was decided against, and not made
	Done                     // there was no error
)

func (o Outcome) String() string {
	return [...]string{"unknown", "unchanged", "refused", "done"}[o]
}

// A Verdict is what an error of a [Service] says.
type Verdict struct {
	Outcome Outcome

	// Repeat says that the same request may have another answer when it is made
	// again. That of an acquire needs its request id for it.
	Repeat bool

	// Anew says that the request id is used up, and another has another answer.
	Anew bool

	// Wait says that the lock is not to be had now, and may be later.
	Wait bool

	// Repair says that someone has to repair something before there is another
	// answer: the deployment, or the rights of the caller. That may happen by
	// itself: credentials are renewed, a table is there again.
	Repair bool

	// After is how long the service asks to wait before a repeat, up to 30 s.
	After time.Duration
}

// maxAfter bounds how long a service is believed that asks to wait: what it says
// may be a mistake, and is asked for again.
const maxAfter = 30 * time.Second

// verdicts is what each error says. The first that matches counts: what leaves
// the outcome open does so whatever else it says. What nothing matches is as the
// first.
var verdicts = []struct {
	err error
	Verdict
}{
	{ErrOutcomeUnknown, Verdict{Outcome: Unknown, Repeat: true}},
	{ErrHeld, Verdict{Outcome: Refused, Wait: true}},
	{ErrLost, Verdict{Outcome: Refused}}, // ErrExpired too
	{ErrRequestSpent, Verdict{Outcome: Refused, Anew: true}},
	{ErrRequestConflict, Verdict{Outcome: Refused, Anew: true}},
	{ErrTokenChanged, Verdict{Outcome: Refused}},
	{ErrInvalid, Verdict{Outcome: Refused}},
	{ErrForbidden, Verdict{Outcome: Refused, Repair: true}},
	{ErrThrottled, Verdict{Outcome: Unchanged, Repeat: true, Wait: true}},
	{ErrUnavailable, Verdict{Outcome: Unchanged, Repeat: true, Wait: true}},
	{ErrTooManyWithdrawn, Verdict{Outcome: Unchanged, Repeat: true}},
	{ErrClockSkew, Verdict{Outcome: Unchanged, Repeat: true}},
	{ErrQuarantine, Verdict{Outcome: Unchanged, Repeat: true}},
	{ErrMisconfigured, Verdict{Outcome: Unchanged, Repair: true}},
}

// Classify returns what err says, for whoever has to decide what to do next.
func Classify(err error) Verdict {
	if err == nil {
		return Verdict{Outcome: Done}
	}
	v := verdicts[0].Verdict
	for _, known := range verdicts {
		if errors.Is(err, known.err) {
			v = known.Verdict
			break
		}
	}
	var held *HeldError
	var retry *RetryError
	switch {
	case errors.As(err, &retry):
		v.After = retry.After
	case errors.As(err, &held):
		v.After = held.RetryAfter()
	}
	v.After = min(max(v.After, 0), maxAfter)
	return v
}
