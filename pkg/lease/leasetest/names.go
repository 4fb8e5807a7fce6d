package leasetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// Locks are names that have lost a part of themselves somewhere before: in a
// path, a query, a key, a log line, or a normalization. All are valid and
// different.
var Locks = []string{
	"a", "a/b", "a%2Fb", "a%2fb", "a//b", "/", "../x", "./x", "s3://b/k?v=1#f", "a?b", "a#b", "a&b=c", "a+b", "a b", " ", "%", "%zz",
	"\u00e9", "e\u0301", "\U0001f512", "A", "\"", "\\", "<&>", "null", "0", strings.Repeat("x", 512), strings.Repeat("\u00e9", 256),
}

var names = []Promise{
	{"any text names a lock of its own", func(t *testing.T, s lease.Service) {
		namespace := strings.ToLower(strings.NewReplacer("_", "x", "-", "y").Replace("n" + lease.NewID()))
		granted := make(map[string]fence.Token)
		for _, lock := range Locks {
			c := client{t, s, lease.Name{Namespace: namespace, Lock: lock}}
			l := c.acquire(c.request())
			if l.Name.Lock != lock {
				t.Errorf("the lock %q came back as %q", lock, l.Name.Lock)
			}
			granted[lock] = l.Token
		}
		for _, lock := range Locks {
			c := client{t, s, lease.Name{Namespace: namespace, Lock: lock}}
			if got := c.get(); !got.Held || got.Token != granted[lock] || got.Name.Lock != lock {
				t.Errorf("the lock %q is %+v, want it held under %d", lock, got, granted[lock])
			}
		}
	}},
	{"namespaces cannot be mixed", func(t *testing.T, s lease.Service) {
		id := strings.ToLower(strings.NewReplacer("_", "x", "-", "y").Replace(lease.NewID()))
		for _, n := range []lease.Name{
			{Namespace: id + "ab", Lock: "c"}, {Namespace: id + "a", Lock: "bc"},
			{Namespace: id, Lock: "b#c"}, {Namespace: id, Lock: "b/c"}, {Namespace: id + "-b", Lock: "c"},
		} {
			c := client{t, s, n}
			c.acquire(c.request())
		}
	}},
	{"a request that can never succeed names its field and changes nothing", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		type request = lease.AcquireRequest
		for _, bad := range []struct {
			field  string
			change func(*request)
		}{
			{"namespace", func(q *request) { q.Name.Namespace = "Upper" }},
			{"namespace", func(q *request) { q.Name.Namespace = "a#b" }},
			{"namespace", func(q *request) { q.Name.Namespace = "-a" }},
			{"namespace", func(q *request) { q.Name.Namespace = strings.Repeat("a", 64) }},
			{"lock", func(q *request) { q.Name.Lock = "" }},
			{"lock", func(q *request) { q.Name.Lock = strings.Repeat("x", 513) }},
			{"lock", func(q *request) { q.Name.Lock = "a\x00" }},
			{"lock", func(q *request) { q.Name.Lock = "a\n" }},
			{"lock", func(q *request) { q.Name.Lock = "a\u0085" }},
			{"ttl_ms", func(q *request) { q.TTL = 0 }},
			{"ttl_ms", func(q *request) { q.TTL = -time.Second }},
			{"ttl_ms", func(q *request) { q.TTL = time.Second - time.Millisecond }},
			{"ttl_ms", func(q *request) { q.TTL = time.Hour + time.Millisecond }},
			{"holder", func(q *request) { q.Holder = strings.Repeat("x", 257) }},
			{"holder", func(q *request) { q.Holder = "a\x1b" }},
			{"request_id", func(q *request) { q.RequestID = strings.Repeat("x", 21) }},
			{"request_id", func(q *request) { q.RequestID = strings.Repeat("x", 65) }},
			{"request_id", func(q *request) { q.RequestID = strings.Repeat("x", 21) + "=" }},
			{"wait_ms", func(q *request) { q.Wait = -time.Millisecond }},
			{"wait_ms", func(q *request) { q.Wait = 20*time.Second + time.Millisecond }},
			{"metadata", func(q *request) { q.Metadata = strings.Repeat("x", 2049) }},
			{"metadata", func(q *request) { q.Metadata = "\x00" }},
			{"min_hold_ms", func(q *request) { q.MinHold = q.TTL + time.Millisecond }},
			{"min_hold_ms", func(q *request) { q.MinHold = -time.Millisecond }},
			{"lock_delay_ms", func(q *request) { q.LockDelay = time.Minute + time.Millisecond }},
			{"lock_delay_ms", func(q *request) { q.LockDelay = -time.Millisecond }},
		} {
			q := c.request()
			bad.change(&q)
			_, err := s.Acquire(t.Context(), q)
			c.invalid(err, bad.field)
		}
		l := c.acquire(c.request())
		_, err := c.renew(lease.Lease{Name: l.Name, ID: "short", Token: l.Token}, time.Minute)
		c.invalid(err, "lease_id")
		_, err = c.renew(lease.Lease{Name: l.Name, ID: l.ID}, time.Minute)
		c.invalid(err, "token")
		_, err = c.renew(l, 0)
		c.invalid(err, "ttl_ms")
		_, err = c.release(lease.Lease{Name: l.Name, ID: l.ID, Token: fence.Max + 1})
		c.invalid(err, "token")
		_, err = s.Break(t.Context(), lease.BreakRequest{Name: l.Name, Token: l.Token})
		c.invalid(err, "reason")
		_, err = s.Get(t.Context(), lease.Name{Namespace: l.Name.Namespace})
		c.invalid(err, "lock")
		c.holds(l)
	}},
}

// invalid checks that a request was refused for the given field.
func (c client) invalid(err error, field string) {
	c.Helper()
	var invalid *lease.InvalidError
	if !errors.As(err, &invalid) || !errors.Is(err, lease.ErrInvalid) {
		c.Errorf("got %v, want an InvalidError for %s", err, field)
	} else if invalid.Field != field {
		c.Errorf("got the field %q (%v), want %q", invalid.Field, err, field)
	}
}
