package lease

import (
	"cmp"
	"fmt"
	"time"
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
	Skew time.Duration

	// Retention is how long an idle lock is remembered, at least 1 day: longer
	// than any request can be under way. Zero means 7 days.
	Retention time.Duration

	// RestoredAt is when the table was restored from a backup, read after
	// writes to the old table had been cut off. It must stay set while any item
	// of the backup is left. Zero means that it never was.
	RestoredAt time.Time
}

const minTTL = time.Second

// Validate reports the first field that is out of its range.
func (r Rules) Validate() error {
	for _, f := range []struct {
		name          string
		value, lo, hi time.Duration
	}{
		{"maximum TTL", r.maxTTL(), minTTL, 24 * time.Hour},
		{"maximum lock delay", r.maxLockDelay(), 0, time.Minute},
		{"skew", r.skew(), 0, time.Minute},
		{"retention", r.retention(), 24 * time.Hour, 10 * 365 * 24 * time.Hour},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("lease: %s is %v, want %v to %v", f.name, f.value, f.lo, f.hi)
		}
	}
	return nil
}

func (r Rules) maxTTL() time.Duration       { return cmp.Or(r.MaxTTL, time.Hour) }
func (r Rules) maxLockDelay() time.Duration { return cmp.Or(r.MaxLockDelay, time.Minute) }
func (r Rules) skew() time.Duration         { return cmp.Or(r.Skew, time.Second) }
func (r Rules) retention() time.Duration    { return cmp.Or(r.Retention, 7*24*time.Hour) }

// Floor is the instant before which nothing is granted, and the number that
// every valid token exceeds: whatever was granted after the backup and is
// forgotten now has ended by then, and had a token below. Zero without a
// restore.
func (r Rules) Floor() Instant {
	if r.RestoredAt.IsZero() {
		return 0
	}
	return At(r.RestoredAt).Add(max(r.maxTTL(), time.Minute) + r.maxLockDelay() + r.skew())
}

// Open reports whether a host whose clock reads now may grant, renew or break.
// It fails with [ErrClockSkew] when the call c was received, by the clock of
// the gateway, at a time that makes this one's reading doubtful: the clock is
// wrong, or the process was frozen in between.
func (r Rules) Open(now Instant, c *Call) error {
	if c.Received.IsZero() {
		return nil
	}
	if age := now.Sub(At(c.Received)); age > maxCallAge || age < -r.skew() {
		return &RetryError{Err: ErrClockSkew, After: time.Second}
	}
	return nil
}

// Agree fails with [ErrClockSkew] when the clock of the store is ahead of this
// host's by at least least and at most most, and none of that is within the
// skew: then this host must not grant, renew or break.
func (r Rules) Agree(least, most time.Duration) error {
	if least > r.skew() || most < -r.skew() {
		return &RetryError{Err: ErrClockSkew, After: time.Second}
	}
	return nil
}

// maxCallAge is how long API Gateway waits for an integration. The caller of
// an older call has been told that it failed.
const maxCallAge = 30 * time.Second
