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
// concurrent use. It has no state: copy it to use other settings for some locks.
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

	// Metadata, MinHold and LockDelay are as in [lease.AcquireRequest].
	Metadata  string
	MinHold   time.Duration
	LockDelay time.Duration

	// Observe is told what happens to locks; see [LogEvents]. It is called from
	// several goroutines and should return quickly. Nil means nobody is told.
	Observe func(context.Context, Event)
}

func (c *Client) ttl() time.Duration    { return cmp.Or(c.TTL, 15*time.Second) }
func (c *Client) margin() time.Duration { return cmp.Or(c.Margin, c.ttl()/10) }

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
// deadline, with [ErrUnavailable] if the service gave no answer until then, with
// the context's own error if it was cancelled, and at once, and for good, with
// [ErrMisconfigured], [lease.ErrForbidden] or [lease.ErrInvalid].
func (c *Client) Acquire(ctx context.Context, lock string) (*Held, error) {
	return c.acquire(ctx, context.WithoutCancel(ctx), lock, true)
}

// TryAcquire is Acquire without the wait: while the lock is held it fails with
// [ErrHeld], and with [ErrUnavailable] if the service says that it cannot grant
// it now. Answers that leave open whether the lock was granted are still asked
// for again, as long as ctx allows, but for no more than 15 s or the TTL.
func (c *Client) TryAcquire(ctx context.Context, lock string) (*Held, error) {
	limited, cancel := context.WithTimeout(ctx, min(c.ttl(), serverWait+answerTime))
	defer cancel()
	return c.acquire(limited, context.WithoutCancel(ctx), lock, false)
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
	h, err := c.acquire(ctx, ctx, lock, true)
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
