package lock

import (
	"context"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// An Election has one of many processes lead at a time. Its terms are the
// grants of a lock, and a term's number is the fencing token: a leader writes
// with it, so that storage refuses what a deposed leader still sends.
type Election struct {
	// Client acquires the lock. Required.
	Client *Client

	// Lock is the full name of the lock, the same for all candidates. Required.
	Lock string

	// OnElected leads. Its context ends when the term does. When it returns the
	// leader resigns: with nil it becomes a candidate again, after the others
	// have had their chance; with an error, Run ends. Required.
	OnElected func(ctx context.Context, term fence.Token) error

	// OnLost is told that a term ended against the leader's will, after
	// OnElected has returned; err matches [ErrNotHeld]. Nil means that nobody
	// is told.
	OnLost func(term fence.Token, err error)
}

// pauseAfterTerm is how long a leader that resigned lets the others go first:
// longer than they ever pause between two requests while the lock is held.
const pauseAfterTerm = 1500 * time.Millisecond

// Run takes part in the election until ctx ends, or OnElected returns an error,
// and returns that error or the context's. It resigns before it returns. At no
// time does it run two terms: the next begins only when OnElected has returned
// from the one before.
func (e *Election) Run(ctx context.Context) error {
	for {
		h, err := e.Client.acquire(ctx, ctx, e.Lock, true)
		if err != nil {
			return err
		}
		if err := e.lead(ctx, h); err != nil {
			return err
		}
		if sleep(ctx, pauseAfterTerm); ctx.Err() != nil {
			return ended(ctx)
		}
	}
}

// lead runs one term.
func (e *Election) lead(ctx context.Context, h *Held) error {
	defer h.Release(ctx) // Observe is told if it fails, and the lease ends by itself
	err := e.OnElected(h.Context(), h.Token())
	lost := h.Err()
	if lost == nil {
		return err
	}
	if e.OnLost != nil {
		e.OnLost(h.Token(), lost)
	}
	// What the work failed with, after it was told to stop, is no reason to
	// leave the election.
	return nil
}
