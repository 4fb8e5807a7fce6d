package lock

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// EventKind says what an [Event] is.
type EventKind string

// The kinds of events.
const (
	Granted   EventKind = "granted"   // Took is the wait
	Refused   EventKind = "refused"   // Err says why; a waiter goes on
	Renewed   EventKind = "renewed"   // Took is the time of the request
	Unrenewed EventKind = "unrenewed" // a renewal failed for now; Err says why
	Lost      EventKind = "lost"      // Err is what [Held.Err] returns from now on
	Released  EventKind = "released"  // Err is nil, or says why it may not be
	GivenUp   EventKind = "given up"  // a request that nobody waits for holds nothing any more; Err as for Released
	Abandoned EventKind = "abandoned" // the holder before, with Token and Holder, let its lease run out
	Failed    EventKind = "failed"    // the work of a leader that had lost the lock; Err is what it returned
)

// An Event is something that happened to a lock.
type Event struct {
	Kind   EventKind
	Lock   string      // full name
	Token  fence.Token // 0 for a refusal
	Holder string      // of an abandoned lease
	Err    error
	Took   time.Duration
	_      struct{}
}

// LogEvents returns a value for [Client.Observe] that logs. Lost and abandoned
// locks are warnings; so is all that failed. What happens all the time is logged
// at debug level.
func LogEvents(log *slog.Logger) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		level := slog.LevelInfo
		switch {
		case e.Kind == Renewed, errors.Is(e.Err, ErrHeld), e.Kind == GivenUp && e.Err == nil:
			level = slog.LevelDebug
		case e.Kind == Abandoned, e.Err != nil:
			level = slog.LevelWarn
		}
		attrs := []slog.Attr{
			slog.String("event", string(e.Kind)),
			slog.String("lock", e.Lock),
			slog.Int64("token", int64(e.Token)),
		}
		if e.Holder != "" {
			attrs = append(attrs, slog.String("holder", e.Holder))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("error", e.Err))
		}
		if e.Took != 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		log.LogAttrs(ctx, level, "lock", attrs...)
	}
}

// tell tells the observer. One that panics must not take the process with it,
// since it is called from goroutines of ours.
func (c *Client) tell(ctx context.Context, e Event) {
	if c.Observe == nil {
		return
	}
	defer func() {
		if bug := recover(); bug != nil {
			slog.ErrorContext(ctx, "lock: Observe panicked", "panic", bug, "stack", string(debug.Stack()))
		}
	}()
	c.Observe(ctx, e)
}

// tellGranted tells of a grant, and of the lease that it took over.
func (c *Client) tellGranted(ctx context.Context, lock string, l lease.Lease, waited time.Duration) {
	c.tell(ctx, Event{Kind: Granted, Lock: lock, Token: l.Token, Took: waited})
	if a := l.Abandoned; a != nil {
		c.tell(ctx, Event{Kind: Abandoned, Lock: lock, Token: a.Token, Holder: a.Holder})
	}
}

const (
	// quiet is how long a service may be out of reach before that is logged.
	quiet = 3 * time.Second

	// quieter is how long it takes until that is logged again.
	quieter = time.Minute
)

// A trouble is that of a call which has no usable answer. Where nobody observes,
// it is logged: a first program with a wrong address would wait in silence.
type trouble struct {
	client *Client
	lock   string
	since  time.Time
	told   time.Time
}

func (t *trouble) over() { t.since = time.Now() }

func (t *trouble) tell(ctx context.Context, err error) {
	now := time.Now()
	if t.client.Observe != nil || err == nil || errors.Is(err, ErrHeld) || now.Sub(t.since) < quiet || now.Sub(t.told) < quieter {
		return
	}
	t.told = now
	slog.WarnContext(ctx, "lock: no usable answer from the service; still asking", "lock", t.lock, "for", now.Sub(t.since), "error", err)
}
