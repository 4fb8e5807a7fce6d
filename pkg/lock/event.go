package lock

import (
	"context"
	"log/slog"
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
	Released  EventKind = "released"  // Err is nil, or says why it may not be; also of a grant that came too late
	Abandoned EventKind = "abandoned" // the holder before, with Token and Holder, let its lease run out
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
// locks are warnings; so are releases that failed. What happens all the time is
// logged at debug level.
func LogEvents(log *slog.Logger) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		level := slog.LevelInfo
		switch {
		case e.Kind == Lost, e.Kind == Abandoned, e.Kind == Released && e.Err != nil:
			level = slog.LevelWarn
		case e.Kind == Renewed, e.Kind == Refused:
			level = slog.LevelDebug
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

func (c *Client) tell(ctx context.Context, e Event) {
	if c.Observe != nil {
		c.Observe(ctx, e)
	}
}

// tellGranted tells of a grant, and of the lease that it took over.
func (c *Client) tellGranted(ctx context.Context, lock string, l lease.Lease, waited time.Duration) {
	c.tell(ctx, Event{Kind: Granted, Lock: lock, Token: l.Token, Took: waited})
	if a := l.Abandoned; a != nil {
		c.tell(ctx, Event{Kind: Abandoned, Lock: lock, Token: a.Token, Holder: a.Holder})
	}
}
