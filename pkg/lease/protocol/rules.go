package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// Rules are what one deployment allows. All its hosts must have the same: they
// decide together when a lease has ended.
type Rules struct {
	// MaxTTL is the longest TTL, 1 s to 24 h. Zero means 1 h.
	MaxTTL time.Duration

	// MaxLockDelay is the longest lock delay, up to 60 s. Zero means 60 s.
	MaxLockDelay time.Duration

	// Skew is how far the clocks of two hosts may be apart, up to 60 s. A lease
	// that ran out is granted to another only this much later. Zero means 1 s.
	// A lease keeps the allowance of its grant, however often it is renewed: raise
	// the skew before the clocks are let drift, and wait until the leases from
	// before have ended.
	Skew time.Duration

	// Retention is how long an idle lock is remembered, at least 1 day: longer
	// than any request can be under way. Zero means 7 days.
	Retention time.Duration

	// RestoredAt is when the table was restored from a backup, read after
	// writes to the old table had been cut off. It must stay set while any item
	// of the backup is left. Zero means that it never was.
	RestoredAt time.Time

	// QuarantineEnd is until when nothing is granted or broken after a restore:
	// what [Rules.QuarantineAfter] says of the rules of the old table. It stays
	// as it was computed then, whatever the limits become. Required with
	// RestoredAt, and not set without.
	QuarantineEnd time.Time
}

const (
	mostSkew     = time.Minute
	minRetention = 24 * time.Hour
	mostRetained = 10 * 365 * 24 * time.Hour

	// sinceRestore is from a restore to its floor. It is more than the largest
	// skew and lock delay together, and it is no limit of a deployment: a floor
	// that moves leaves live leases below it.
	sinceRestore = 180 * time.Second
)

// The times that a setting can mean. What is outside has too few digits, or too
// many. No token is below the first of them: the first token of a lock is read
// from the clock.
var (
	earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
)

// ValidTime reports whether a setting or an event can mean t: a time from 2020
// to 2100.
func ValidTime(t time.Time) bool { return !t.Before(earliest) && t.Before(latest) }

// Validate reports the first field that is out of its range, on a host whose
// clock reads now.
func (r Rules) Validate(now time.Time) error {
	for _, f := range [...]struct {
		name          string
		value, lo, hi time.Duration
	}{
		{"maximum TTL (MaxTTL)", r.maxTTL(), lease.MinTTL, lease.MaxTTL},
		{"maximum lock delay (MaxLockDelay)", r.maxLockDelay(), 0, lease.MaxLockDelay},
		{"skew (Skew)", r.skew(), 0, mostSkew},
		{"retention (Retention)", r.retention(), minRetention, mostRetained},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("lease: %s is %v, want %v to %v", f.name, f.value, f.lo, f.hi)
		}
	}
	restored, end := r.RestoredAt, r.QuarantineEnd
	first, last := restored.Add(sinceRestore), restored.Add(lease.MaxTTL+lease.MaxLockDelay+mostSkew)
	switch {
	case restored.IsZero() && end.IsZero():
		return nil
	case end.IsZero():
		return errors.New("lease: end of the quarantine (QuarantineEnd) is not set, and the time of a restore is")
	case restored.IsZero():
		return errors.New("lease: end of the quarantine (QuarantineEnd) is set, and the time of a restore is not")
	case !ValidTime(restored):
		return fmt.Errorf("lease: time of the restore (RestoredAt) is %v, want one from 2020 to 2100", restored)
	case restored.After(now.Add(r.skew())):
		return fmt.Errorf("lease: time of the restore (RestoredAt) is %v, after %v, which is now", restored, now)
	case end.Before(first) || end.After(last):
		return fmt.Errorf("lease: end of the quarantine (QuarantineEnd) is %v, want %v to %v", end, first, last)
	}
	return nil
}

func (r Rules) maxTTL() time.Duration       { return cmp.Or(r.MaxTTL, time.Hour) }
func (r Rules) maxLockDelay() time.Duration { return cmp.Or(r.MaxLockDelay, time.Minute) }
func (r Rules) skew() time.Duration         { return cmp.Or(r.Skew, time.Second) }
func (r Rules) retention() time.Duration    { return cmp.Or(r.Retention, 7*24*time.Hour) }

// Floor is the number that no valid token is below: whatever was granted after
// the backup, and is forgotten now, had a smaller one. Zero without a restore.
func (r Rules) Floor() Instant {
	if r.RestoredAt.IsZero() {
		return 0
	}
	return At(r.RestoredAt).Add(sinceRestore)
}

// QuarantineAfter returns when every lease has ended that was granted under r,
// and forgotten by a restore at the given time. It is to be computed once, from
// the rules in force when the old table was cut off; see [Rules.QuarantineEnd].
func (r Rules) QuarantineAfter(restored time.Time) time.Time {
	return restored.Add(max(sinceRestore, r.maxTTL()+r.maxLockDelay()+r.skew()))
}

// Open reports whether a host whose clock reads now may grant, renew or break.
// It fails with [lease.ErrClockSkew] when the call c was received, by the clock of
// the gateway, at a time that makes this one's reading doubtful: the clock is
// wrong, or the process was frozen in between.
func (r Rules) Open(now Instant, c *lease.Call) error {
	if c.Received.IsZero() {
		return nil
	}
	if age := now.Sub(At(c.Received)); age > maxCallAge || age < -r.skew() {
		return &lease.RetryError{Err: lease.ErrClockSkew, After: time.Second}
	}
	return nil
}

// Agree fails with [lease.ErrClockSkew] when the clock of the store is ahead of this
// host's by at least least and at most most, and none of that is within the
// skew: then this host must not grant, renew or break.
func (r Rules) Agree(least, most time.Duration) error {
	if least > r.skew() || most < -r.skew() {
		return &lease.RetryError{Err: lease.ErrClockSkew, After: time.Second}
	}
	return nil
}

// Since fails with [lease.ErrClockSkew] when a change was made by the reading sent of
// this host's clock, and the clock reads now after the answer: it was set back in
// between, or so much time has passed that it may have been set forward.
func (r Rules) Since(sent, now Instant) error {
	if age := now.Sub(sent); age < -r.skew() || age > maxCallAge {
		return &lease.RetryError{Err: lease.ErrClockSkew, After: time.Second}
	}
	return nil
}

// maxCallAge is how long API Gateway waits for an integration. The caller of
// an older call has been told that it failed.
const maxCallAge = 30 * time.Second
