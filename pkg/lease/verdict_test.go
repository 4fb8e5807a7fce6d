package lease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

func TestEveryErrorHasAVerdict(t *testing.T) {
	for _, c := range []struct {
		err  error
		want lease.Verdict
	}{
		{nil, lease.Verdict{Outcome: lease.Done}},
		{lease.ErrHeld, lease.Verdict{Outcome: lease.Refused, Wait: true}},
		{&lease.HeldError{Remaining: 300 * time.Millisecond}, lease.Verdict{Outcome: lease.Refused, Wait: true, After: 300 * time.Millisecond}},
		{&lease.HeldError{Remaining: -time.Hour}, lease.Verdict{Outcome: lease.Refused, Wait: true}},
		{&lease.RetryError{Err: lease.ErrThrottled, After: 2 * time.Second}, lease.Verdict{Repeat: true, Wait: true, Outcome: lease.Unchanged, After: 2 * time.Second}},
		{&lease.RetryError{Err: lease.ErrQuarantine, After: 1 << 62}, lease.Verdict{Repeat: true, Outcome: lease.Unchanged, After: 30 * time.Second}},
		{&lease.RetryError{Err: lease.ErrForbidden, After: -1}, lease.Verdict{Outcome: lease.Refused, Repair: true}},
		{fmt.Errorf("%w: %w", lease.ErrForbidden, lease.ErrOutcomeUnknown), lease.Verdict{Repeat: true}},
		{fmt.Errorf("%w: %w", lease.ErrUnavailable, context.Canceled), lease.Verdict{Outcome: lease.Unchanged, Repeat: true, Wait: true}},
		{context.DeadlineExceeded, lease.Verdict{Repeat: true}},
		{errors.Join(io.EOF, errors.New("of tomorrow")), lease.Verdict{Repeat: true}},
	} {
		if got := lease.Classify(c.err); got != c.want {
			t.Errorf("%v: got %+v, want %+v", c.err, got, c.want)
		}
	}
}
