package fence

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
)

// An Observer is told of every refusal of a guard: err is, or wraps, a
// [StaleError] or an [OtherLockError]. It is for logs and metrics and decides
// nothing; the caller of the guard gets the same error. A nil Observer is valid
// and sees nothing.
type Observer func(ctx context.Context, err error)

// See tells o of err if that is a refusal that no observer was told of, however
// it was wrapped since, and returns err.
func (o Observer) See(ctx context.Context, err error) error {
	if o == nil {
		return err
	}
	var stale *StaleError
	var other *OtherLockError
	switch {
	case errors.As(err, &stale) && atomic.CompareAndSwapUint32(&stale.observed, 0, 1),
		stale == nil && errors.As(err, &other) && atomic.CompareAndSwapUint32(&other.observed, 0, 1):
		o(ctx, err)
	}
	return err
}

// StaleException is a word to search logs for, the same in every language and
// for every store. [LogRefusals] writes it as the attribute "exception".
const StaleException = "StaleFencingTokenException"

// LogRefusals returns an [Observer] that logs each refusal as one warning, with
// the attributes resource, lock and token, what the store had seen, and whether
// it is known that nothing was changed.
func LogRefusals(l *slog.Logger) Observer {
	return func(ctx context.Context, err error) {
		var stale *StaleError
		var other *OtherLockError
		switch {
		case errors.As(err, &stale):
			l.LogAttrs(ctx, slog.LevelWarn, "stale fencing token",
				slog.String("exception", StaleException),
				slog.String("resource", stale.Resource),
				slog.String("lock", stale.Lock),
				slog.Int64("token", int64(stale.Token)),
				slog.Int64("seen", int64(stale.Seen)),
				slog.Bool("not_applied", stale.NotApplied))
		case errors.As(err, &other):
			l.LogAttrs(ctx, slog.LevelWarn, "fencing token of another lock",
				slog.String("resource", other.Resource),
				slog.String("lock", other.Lock),
				slog.String("bound", other.Bound),
				slog.Bool("not_applied", other.NotApplied))
		}
	}
}
