package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := rehearse(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

// limits are those of the deployment. A quarantine takes at least three minutes,
// whatever they are.
var limits = protocol.Rules{MaxTTL: time.Minute, MaxLockDelay: time.Second, Skew: time.Second}

// shortened is by how much the rehearsal dates the cut-off back, so that it ends
// in seconds. In earnest the time is read from the clock.
const shortened = 170 * time.Second

func rehearse(ctx context.Context, out io.Writer) (err error) {
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	say("Starting a DynamoDB engine and compiling the service…")
	if err := localtest.Install(ctx, out, "dynamodb"); err != nil {
		return err
	}
	db, err := localtest.StartDynamoDB(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r := rehearsal{db: db}
	if err := r.build(ctx); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)

	say("\nBefore: table %q", before)
	s, err := r.serve(ctx, before, limits)
	if err != nil {
		return err
	}
	defer s.stop()
	kept, err := s.acquire(ctx, "kept")
	if err != nil {
		return err
	}
	first, err := s.acquire(ctx, "used")
	if err == nil {
		err = s.release(ctx, first)
	}
	if err != nil {
		return err
	}
	backup, err := r.items(ctx, before)
	if err != nil {
		return err
	}
	say("  a holder has lock %q, token %d; lock %q was used with token %d; a backup is made", "kept", kept.Token, "used", first.Token)
	last, err := s.acquire(ctx, "used")
	if err != nil {
		return err
	}
	say("  a holder gets lock %q, token %d: storage has seen this token, the backup has not", "used", last.Token)
	s.stop()

	say("\nSteps 1 and 2: the old table is cut off, and the time is read")
	if err := r.remove(ctx, before); err != nil {
		return err
	}
	restored := time.Now().Add(-shortened)
	told := limits
	told.RestoredAt, told.QuarantineEnd = restored, limits.QuarantineAfter(restored)
	say("  pawl:restored-at-ms    %d   (dated back by %v, to shorten this rehearsal)", restored.UnixMilli(), shortened)
	say("  pawl:quarantine-end-ms %d   (the time + 180 s, or + longest TTL + lock delay + skew)", told.QuarantineEnd.UnixMilli())

	say("\nWhat a restore would do without the two numbers")
	if err := r.untold(ctx, say, backup, last); err != nil {
		return err
	}
	say("\nStep 3: the backup is restored to table %q", after)
	if err := r.restore(ctx, after, backup); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.remove(context.WithoutCancel(ctx), after)) }()
	say("\nStep 4: the service is deployed with the new table and both numbers")
	if s, err = r.serve(ctx, after, told); err != nil {
		return err
	}
	defer s.stop()
	if err := s.quarantined(ctx, say, kept); err != nil {
		return err
	}
	return s.resumed(ctx, say, told, last)
}
