package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

type print func(format string, args ...any)

// untold shows what the two numbers are for: it fails unless a token is granted
// twice without them.
func (r *rehearsal) untold(ctx context.Context, say print, backup []item, last lease.Lease) error {
	if err := r.restore(ctx, untold, backup); err != nil {
		return err
	}
	s, err := r.serve(ctx, untold, limits)
	if err != nil {
		return err
	}
	l, err := s.acquire(ctx, "used")
	s.stop()
	if err = errors.Join(err, r.remove(ctx, untold)); err != nil {
		return err
	}
	if l.Token != last.Token {
		return fmt.Errorf("token %d, not %d again: the rehearsal shows nothing", l.Token, last.Token)
	}
	say("  lock %q is granted with token %d, a second time: guarded storage would take the writes of both holders", "used", l.Token)
	return nil
}

// quarantined fails unless the service refuses, for now, what the backup cannot
// know to be harmless.
func (s *service) quarantined(ctx context.Context, say print, kept lease.Lease) error {
	_, err := s.acquire(ctx, "used")
	var retry *lease.RetryError
	if !errors.Is(err, lease.ErrQuarantine) || !errors.As(err, &retry) {
		return fmt.Errorf("an acquire in the quarantine: %w, want it refused", err)
	}
	say("  acquire of %q: %v; again in %v", "used", err, retry.After.Round(time.Second))
	if _, err = s.renew(ctx, kept); !errors.Is(err, lease.ErrLost) {
		return fmt.Errorf("a renewal of a lease of the backup: %w, want it lost", err)
	}
	say("  renewal of %q by its holder: %v; it may have been broken after the backup", "kept", err)
	return nil
}

// resumed waits for the end of the quarantine and fails unless the locks are
// granted then, with tokens above all that were granted before.
func (s *service) resumed(ctx context.Context, say print, told protocol.Rules, last lease.Lease) error {
	say("\nAfter the quarantine the service goes on by itself")
	if err := sleep(ctx, time.Until(told.QuarantineEnd)); err != nil {
		return err
	}
	for _, lock := range []string{"used", "kept"} {
		l, err := s.acquire(ctx, lock)
		if err != nil {
			return fmt.Errorf("an acquire after the quarantine: %w", err)
		}
		if l.Token <= last.Token {
			return fmt.Errorf("lock %q was granted with token %d, and %d was granted before the restore", lock, l.Token, last.Token)
		}
		say("  lock %q is granted with token %d, above all before", lock, l.Token)
		if err := s.release(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
