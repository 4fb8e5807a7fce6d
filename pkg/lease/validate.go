package lease

import (
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
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

// Validate returns an [InvalidError] for the first field that is out of its
// range under r.
func (q AcquireRequest) Validate(r Rules) error {
	return firstError(
		q.Name.Validate(),
		validDuration("ttl_ms", q.TTL, minTTL, r.maxTTL()),
		validText("holder", q.Holder, maxHolder, ""),
		validOptionalID("request_id", q.RequestID),
		validDuration("wait_ms", q.Wait, 0, maxWait),
		validText("metadata", q.Metadata, maxMetadata, "\t\n\r"),
		validDuration("min_hold_ms", q.MinHold, 0, q.TTL),
		validDuration("lock_delay_ms", q.LockDelay, 0, r.maxLockDelay()),
	)
}

// Validate returns an [InvalidError] for the first field that is out of its
// range.
func (q RenewRequest) Validate() error {
	return firstError(
		q.Name.Validate(),
		validID("lease_id", q.LeaseID),
		validToken(q.Token),
		validDuration("ttl_ms", q.TTL, minTTL, mostTTL),
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
		return firstError(q.Name.Validate(), validID("request_id", q.RequestID))
	case !byLease:
		return firstError(q.Name.Validate(), invalid("lease_id", "is required, with token; or else request_id is"))
	}
	return firstError(q.Name.Validate(), validID("lease_id", q.LeaseID), validToken(q.Token))
}

// Validate returns an [InvalidError] for the first field that is out of its
// range.
func (q BreakRequest) Validate() error {
	err := firstError(q.Name.Validate(), validToken(q.Token), validText("reason", q.Reason, maxReason, ""))
	if err == nil && q.Reason == "" {
		err = invalid("reason", "is required")
	}
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
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
