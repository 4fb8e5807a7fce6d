package protocol

import "time"

// An Instant is a time as the store keeps it: milliseconds since the Unix
// epoch. Zero means none.
type Instant int64

// At returns t as an Instant, rounded down. It drops the monotonic reading:
// instants are compared between hosts, where only the wall clock has a meaning.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMilli())
}

// Add returns i moved by d, rounded down to the millisecond.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Milliseconds()) }

// Sub returns how long after o the instant i is.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i-o) * time.Millisecond }

// Time returns i in UTC, or the zero time for zero.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(i)).UTC()
}

// Seconds returns i in epoch seconds, rounded up.
func (i Instant) Seconds() int64 { return (int64(i) + 999) / 1000 }
