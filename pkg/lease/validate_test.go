package lease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// What no deployment accepts is in leasetest. These are the limits from both
// sides, and those that the rules set.
func TestRequestsAreAcceptedUpToTheirLimits(t *testing.T) {
	type limits struct{ ttl, delay time.Duration }
	usual, short := limits{time.Hour, time.Minute}, limits{10 * time.Second, 2 * time.Second}
	type request = lease.AcquireRequest
	for _, c := range []struct {
		name   string
		limits limits
		change func(*request)
		field  string // that is refused, or empty
	}{
		{"the least that is needed", usual, func(*request) {}, ""},
		{"the shortest TTL", usual, func(q *request) { q.TTL = time.Second }, ""},
		{"the longest TTL", usual, func(q *request) { q.TTL = time.Hour }, ""},
		{"the longest TTL that the rules allow", short, func(q *request) { q.TTL = 10 * time.Second }, ""},
		{"a longer one", short, func(q *request) { q.TTL = 10*time.Second + time.Millisecond }, "ttl_ms"},
		{"a TTL with a fraction of a millisecond", usual, func(q *request) { q.TTL = time.Second + time.Microsecond }, "ttl_ms"},
		{"a TTL that overflows", usual, func(q *request) { q.TTL = 1<<63 - 1 }, "ttl_ms"},
		{"the longest holder, in bytes", usual, func(q *request) { q.Holder = strings.Repeat("é", 128) }, ""},
		{"a holder that is not UTF-8", usual, func(q *request) { q.Holder = "\xff" }, "holder"},
		{"a holder of two lines", usual, func(q *request) { q.Holder = "a\nb" }, "holder"},
		{"the shortest request id", usual, func(q *request) { q.RequestID = strings.Repeat("a", 22) }, ""},
		{"the longest request id", usual, func(q *request) { q.RequestID = strings.Repeat("-_Zz09aA", 8) }, ""},
		{"a request id with a slash", usual, func(q *request) { q.RequestID = strings.Repeat("a", 22) + "/" }, "request_id"},
		{"a request id with a letter that is not ASCII", usual, func(q *request) { q.RequestID = strings.Repeat("a", 22) + "é" }, "request_id"},
		{"the longest wait", usual, func(q *request) { q.Wait = 20 * time.Second }, ""},
		{"the longest metadata", usual, func(q *request) { q.Metadata = strings.Repeat("x", 2048) }, ""},
		{"metadata of several lines", usual, func(q *request) { q.Metadata = "a\r\n\tb" }, ""},
		{"metadata that is not UTF-8", usual, func(q *request) { q.Metadata = "\xff" }, "metadata"},
		{"a minimum hold of the whole TTL", usual, func(q *request) { q.MinHold = q.TTL }, ""},
		{"a minimum hold with a fraction of a millisecond", usual, func(q *request) { q.MinHold = 1 }, "min_hold_ms"},
		{"the longest lock delay", usual, func(q *request) { q.LockDelay = time.Minute }, ""},
		{"the longest lock delay that the rules allow", short, func(q *request) { q.TTL, q.LockDelay = time.Second, 2*time.Second }, ""},
		{"a longer one than that", short, func(q *request) { q.TTL, q.LockDelay = time.Second, 2*time.Second+time.Millisecond }, "lock_delay_ms"},
	} {
		q := request{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute}
		c.change(&q)
		if c.limits == short && q.TTL == time.Minute {
			t.Fatalf("%s: the TTL is too long for the rules", c.name)
		}
		refused(t, c.name, q.Validate(c.limits.ttl, c.limits.delay), c.field)
	}
}

func TestOtherRequestsAreAcceptedUpToTheirLimits(t *testing.T) {
	n := lease.Name{Namespace: "a", Lock: "b"}
	id := lease.NewID()
	renew := func(id string, token fence.Token, ttl time.Duration) error {
		return lease.RenewRequest{Name: n, LeaseID: id, Token: token, TTL: ttl}.Validate()
	}
	release := func(n lease.Name, id string, token fence.Token) error {
		return lease.ReleaseRequest{Name: n, LeaseID: id, Token: token}.Validate()
	}
	breaks := func(token fence.Token, reason string) error {
		return lease.BreakRequest{Name: n, Token: token, Reason: reason}.Validate()
	}
	for _, c := range []struct {
		name  string
		err   error
		field string
	}{
		{"renew with the largest token and the longest TTL", renew(id, fence.Max, 24*time.Hour), ""},
		{"renew with the smallest token and the shortest TTL", renew(id, 1, time.Second), ""},
		{"renew for longer", renew(id, 1, 24*time.Hour+time.Millisecond), "ttl_ms"},
		{"renew without a TTL", renew(id, 1, 0), "ttl_ms"},
		{"renew without a lease id", renew("", 1, time.Minute), "lease_id"},
		{"renew without a token", renew(id, 0, time.Minute), "token"},
		{"renew with a token that is too large", renew(id, fence.Max+1, time.Minute), "token"},
		{"release", release(n, id, 1), ""},
		{"release without a lock", release(lease.Name{Namespace: "a"}, id, 1), "lock"},
		{"release without a lease id", release(n, "", 1), "lease_id"},
		{"release with a negative token", release(n, id, -1), "token"},
		{"break with the longest reason", breaks(1, strings.Repeat("x", 256)), ""},
		{"break with a longer reason", breaks(1, strings.Repeat("x", 257)), "reason"},
		{"break without a reason", breaks(1, ""), "reason"},
		{"break with a reason of two lines", breaks(1, "a\nb"), "reason"},
		{"break without a token", breaks(0, "gone"), "token"},
		{"break of a lock without a namespace", lease.BreakRequest{Name: lease.Name{Lock: "b"}, Token: 1, Reason: "gone"}.Validate(), "namespace"},
	} {
		refused(t, c.name, c.err, c.field)
	}
}

// refused checks that err is about field, or nil for none.
func refused(t *testing.T, name string, err error, field string) {
	t.Helper()
	var detail *lease.InvalidError
	switch {
	case field == "" && err != nil:
		t.Errorf("%s: got %v", name, err)
	case field != "" && (!errors.As(err, &detail) || !errors.Is(err, lease.ErrInvalid) || detail.Field != field):
		t.Errorf("%s: got %v, want it refused for %s", name, err, field)
	}
}
