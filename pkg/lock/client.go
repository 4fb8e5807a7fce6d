package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Client acquires locks and keeps them renewed. Its methods are safe for
// concurrent use. To use other settings for some locks, copy it before its first
// use: a later copy shares what it does in the background.
type Client struct {
	// Service grants the leases. Required.
	Service lease.Service

	// TTL is how long a lock outlives a holder that vanished, at least 1 s. It
	// is renewed at a third of it. Zero means 15 s.
	TTL time.Duration

	// Margin is how long before the end of the lease the holder stops, less
	// than half of the TTL: the time that work needs to end after its context
	// has. Zero means a tenth of the TTL.
	Margin time.Duration

	// Holder names this holder for people to read, up to 256 bytes. It
	// identifies nothing: two clients with the same text are two holders. Empty
	// means the host's name and the process id.
	Holder string

	// Metadata is any text that others may read while the lock is held.
	Metadata string

	// MinHold is for how long from the grant on nobody else is granted the lock,
	// even when it is released earlier. It is at most the TTL: a job that must
	// not run twice in ten minutes needs a TTL of ten minutes, and after a crash
	// the next one waits for as long.
	MinHold time.Duration

	// LockDelay is for how long a lease that ran out, instead of being released,
	// keeps the lock from others.
	LockDelay time.Duration

	// Observe is told what happens to locks; see [LogEvents]. It is called from
	// several goroutines and should return quickly, but keeps no lock from being
	// renewed. Nil means that nobody is told, but of a service that cannot be
	// reached: that is logged with [slog.Default].
	Observe func(context.Context, Event)

	background *background // see own
}

// A background is what a client does on its own: it keeps locks, and gives up
// requests that nobody waits for.
type background struct {
	keeper keeper
	settler
}

// starting is held while a client gets its background.
var starting sync.Mutex

func (c *Client) own() *background {
	starting.Lock()
	defer starting.Unlock()
	if c.background == nil {
		c.background = &background{keeper: keeper{window: firstWindow}}
	}
	return c.background
}

// Times are asked for in whole milliseconds, and not less than what is wanted.
func (c *Client) ttl() time.Duration { return roundUp(cmp.Or(c.TTL, 15*time.Second)) }

func (c *Client) margin() time.Duration { return cmp.Or(c.Margin, c.ttl()/10) }

func roundUp(d time.Duration) time.Duration {
	if up := d.Truncate(time.Millisecond); up < d && up+time.Millisecond > 0 {
		return up + time.Millisecond
	}
	return d
}

var process = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
})

// Acquire waits for the lock, named "namespace/lock", until it is granted or ctx
// ends. The lock is held until [Held.Release], also when ctx ends later: it is
// for the wait.
//
// It fails with [ErrWaitTimeout] if the lock was held until ctx reached its
// deadline, with [ErrUndecided] if the service gave no usable answer until then,
// with the context's own error if it was cancelled, and at once, and for good,
// with [lease.ErrInvalid]. It fails at once with [ErrMisconfigured] and
// [lease.ErrForbidden] too, unless the service had an answer for this wait
// before: then it goes on, since both can pass.
func (c *Client) Acquire(ctx context.Context, lock string) (*Held, error) {
	return c.acquire(ctx, context.WithoutCancel(ctx), lock, &asking{waits: true})
}

// TryAcquire is Acquire without the wait: while the lock is held it fails with
// [ErrHeld] at once. It goes on asking while the service cannot be reached, or
// cannot decide, for as long as ctx allows but no longer than the TTL, and then
// fails with [ErrUndecided].
func (c *Client) TryAcquire(ctx context.Context, lock string) (*Held, error) {
	limited, cancel := context.WithTimeout(ctx, c.ttl())
	defer cancel()
	return c.acquire(limited, context.WithoutCancel(ctx), lock, new(asking))
}

// Do waits for the lock as [Client.Acquire] does, calls work while it is held,
// and releases it, also when work panics. The context that work gets carries the
// token, and ends with ctx and when the lock is lost.
//
// It returns what work returned. If the lock was lost before work had returned,
// the error matches [ErrNotHeld] too: what was done after that was not
// protected. A release that fails is no error of Do, since the lease ends by
// itself; Observe is told.
func (c *Client) Do(ctx context.Context, lock string, work func(context.Context, fence.Token) error) error {
	h, err := c.acquire(ctx, ctx, lock, &asking{waits: true})
	if err != nil {
		return err
	}
	return h.do(ctx, func(ctx context.Context) error { return work(ctx, h.Token()) })
}

// do calls work with the context of h and releases h.
func (h *Held) do(ctx context.Context, work func(context.Context) error) error {
	defer h.Release(ctx) // Observe is told if it fails, and the lease ends by itself
	err := work(h.Context())
	if lost := h.Err(); lost != nil && !errors.Is(err, lost) {
		return join(err, lost)
	}
	return err
}
