package lease

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Limits of what a deployment can allow.
const (
	MinTTL       = time.Second
	MaxTTL       = 24 * time.Hour
	MaxLockDelay = time.Minute
)

// Limits of single members; a deployment cannot change them.
const (
	maxWait     = 20 * time.Second
	maxHolder   = 256
	maxReason   = 256
	maxMetadata = 2048
	minID       = 22 // a 128-bit number in base64
	maxID       = 64
)

// NewID returns 128 random bits in 22 characters, fit for a lease id or a
// request id.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails; it crashes the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Validate returns an [InvalidError] for the first field that is out of its
// range, where a deployment allows TTLs and lock delays up to those given.
func (q AcquireRequest) Validate(maxTTL, maxLockDelay time.Duration) error {
	return cmp.Or(
		q.Name.Validate(),
		validDuration("ttl_ms", q.TTL, MinTTL, maxTTL),
		validText("holder", q.Holder, maxHolder, ""),
		validOptionalID("request_id", q.RequestID),
		validDuration("wait_ms", q.Wait, 0, maxWait),
		validText("metadata", q.Metadata, maxMetadata, "\t\n\r"),
		validDuration("min_hold_ms", q.MinHold, 0, q.TTL),
		validDuration("lock_delay_ms", q.LockDelay, 0, maxLockDelay),
	)
}

// Validate returns an [InvalidError] for the first field that is out of its
// range.
func (q RenewRequest) Validate() error {
	return cmp.Or(
		q.Name.Validate(),
		validID("lease_id", q.LeaseID),
		validToken(q.Token),
		validDuration("ttl_ms", q.TTL, MinTTL, MaxTTL),
	)
}

// Validate returns an [InvalidError] for the first field that is out of its
// range.
func (q ReleaseRequest) Validate() error {
	byLease := q.LeaseID != "" || q.Token != 0
	switch {
	case q.RequestID != "" && byLease:
		return invalid("request_id", "is given, and so is lease_id or token: want one or the other")
	case q.RequestID != "":
		return cmp.Or(q.Name.Validate(), validID("request_id", q.RequestID))
	case !byLease:
		return cmp.Or(q.Name.Validate(), invalid("lease_id", "is required, with token; or else request_id is"))
	}
	return cmp.Or(q.Name.Validate(), validID("lease_id", q.LeaseID), validToken(q.Token))
}

// Validate returns an [InvalidError] for the first field that is out of its
// range.
func (q BreakRequest) Validate() error {
	err := cmp.Or(q.Name.Validate(), validToken(q.Token), validText("reason", q.Reason, maxReason, ""))
	if err == nil && q.Reason == "" {
		err = invalid("reason", "is required")
	}
	return err
}

func validDuration(field string, d, lo, hi time.Duration) error {
	if d < lo || d > hi {
		return invalid(field, "is %d, want %d to %d", d.Milliseconds(), lo.Milliseconds(), hi.Milliseconds())
	}
	if d%time.Millisecond != 0 {
		return invalid(field, "is %v, want whole milliseconds", d)
	}
	return nil
}

func validToken(t fence.Token) error {
	if !t.Valid() {
		return invalid("token", "is %d, want 1 to %d", t, fence.Max)
	}
	return nil
}

func validOptionalID(field, s string) error {
	if s == "" {
		return nil
	}
	return validID(field, s)
}

func validID(field, s string) error {
	if len(s) < minID || len(s) > maxID {
		return invalid(field, "want %d to %d characters", minID, maxID)
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return invalid(field, "want only A-Z, a-z, 0-9, '-' and '_'")
		}
	}
	return nil
}
