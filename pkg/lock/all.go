package lock

import (
	"context"
	"errors"
	"slices"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// DoAll is Do for several locks: it holds all of them while work runs, or none.
// It takes them in the order of their names, so that two calls never wait for
// each other, and releases them in reverse.
//
// Work gets the token of each lock by its full name. Tokens of different locks
// cannot be compared: send each to the storage that its lock protects. The
// context carries none of them, and ends when any of the locks is lost.
func (c *Client) DoAll(ctx context.Context, locks []string, work func(context.Context, map[string]fence.Token) error) error {
	locks = slices.Sorted(slices.Values(locks))
	if len(locks) == 0 {
		return &lease.InvalidError{Field: "lock", Reason: "none is given"}
	}
	if len(slices.Compact(slices.Clone(locks))) != len(locks) {
		return &lease.InvalidError{Field: "lock", Reason: "one is given twice"}
	}
	for _, lock := range locks { // before any is taken
		if _, err := c.request(lock); err != nil {
			return err
		}
	}
	tokens := make(map[string]fence.Token, len(locks))
	return c.doAll(ctx, locks, tokens, func(ctx context.Context) error {
		return work(fence.NewContext(ctx, fence.Holding{}), tokens)
	})
}

// doAll holds the first lock while it holds the rest while work runs. Each
// context is within that of the lock before, so it ends with any of them.
func (c *Client) doAll(ctx context.Context, locks []string, tokens map[string]fence.Token, work func(context.Context) error) error {
	h, err := c.acquire(ctx, ctx, locks[0], &asking{waits: true})
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrNotHeld) {
			return cause // a lock that was held already was lost during the wait
		}
		return err
	}
	tokens[locks[0]] = h.Token()
	if len(locks) == 1 {
		return h.do(ctx, work)
	}
	return h.do(ctx, func(ctx context.Context) error { return c.doAll(ctx, locks[1:], tokens, work) })
}
