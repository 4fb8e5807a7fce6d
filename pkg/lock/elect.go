package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// OnElected has returned. Err matches [ErrNotHeld], and what OnElected
	// returned too. Nil means that Observe is told of an error of OnElected, or
	// [slog.Default] if nobody observes.
	OnLost func(term fence.Token, err error)
}

// pauseAfterTerm is how long a leader that resigned lets the others go first:
// longer than they ever pause between two requests while the lock is held.
const pauseAfterTerm = 1500 * time.Millisecond

// settleTime is how long Run waits for what its last request may have got.
const settleTime = 5 * time.Second

// Run takes part in the election until ctx ends, or OnElected returns an error,
// and returns that error or the context's. It resigns before it returns, and
// makes sure that it is not elected any more. At no time does it run two terms:
// the next begins only when OnElected has returned from the one before.
//
// What looks like a service that is wrong, [ErrMisconfigured] or
// [lease.ErrForbidden], ends it at the start only. Once the service has had an
// answer, such errors are taken to pass, and Observe is told.
func (e *Election) Run(ctx context.Context) error {
	if e.Client == nil || e.OnElected == nil {
		return fmt.Errorf("%w: lock: Election needs a Client and OnElected", ErrMisconfigured)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		_ = e.Client.Settle(ctx) // what is left runs out
	}()
	for how := (&asking{waits: true}); ; {
		h, err := e.Client.acquire(ctx, ctx, e.Lock, how)
		if err != nil {
			return err
		}
		if err := e.lead(ctx, h); err != nil {
			return err
		}
		if sleep(ctx, pauseAfterTerm); ctx.Err() != nil {
			return reason(ctx)
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
	// What the work failed with, after it was told to stop, is no reason to leave
	// the election. It is told all the same.
	if stopped := errors.Is(err, lost) || errors.Is(err, context.Canceled); err != nil && !stopped {
		if e.OnLost == nil {
			e.failed(h, err)
		}
		lost = join(lost, err)
	}
	if e.OnLost != nil {
		e.OnLost(h.Token(), lost)
	}
	return nil
}

func (e *Election) failed(h *Held, err error) {
	if e.Client.Observe == nil {
		slog.WarnContext(h.ctx, "lock: a leader that had lost its term failed", "lock", h.name, "token", h.Token(), "error", err)
	}
	e.Client.tell(h.ctx, Event{Kind: Failed, Lock: h.name, Token: h.Token(), Err: err})
}
