package leasetest

import (
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

var repeats = []Promise{
	{"an acquire repeated with its request id returns the same lease", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		l := c.acquire(q)
		q.TTL, q.Metadata = time.Hour, "ignored in a repeat"
		again := c.acquire(q)
		if !again.Repeated || again.Token != l.Token || again.ID != l.ID || !again.ExpiresAt.Equal(l.ExpiresAt) || again.TTL != l.TTL {
			t.Errorf("got %+v, want %+v repeated", again, l)
		}
		if again.Remaining > l.TTL {
			t.Errorf("remaining is %v, more than the TTL of %v", again.Remaining, l.TTL)
		}
		c.holds(l)
	}},
	{"a repeat after a renewal sees the renewed lease", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		r, err := c.renew(c.acquire(q), 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if again := c.acquire(q); !again.ExpiresAt.Equal(r.ExpiresAt) || again.TTL != r.TTL {
			t.Errorf("got %+v, want %+v", again, r)
		}
	}},
	{"a repeat still tells of the abandoned lease", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		q.TTL = time.Second
		first := c.acquire(q)
		q = c.request()
		q.Wait = 15 * time.Second
		c.acquire(q)
		if again := c.acquire(q); again.Abandoned == nil || again.Abandoned.Token != first.Token {
			t.Errorf("abandoned is %+v, want token %d", again.Abandoned, first.Token)
		}
	}},
	{"two tries of one request that wait at the same time get the same lease", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		q := c.request()
		q.Wait = 15 * time.Second
		granted := make(chan lease.Lease)
		for range 2 {
			go func() {
				l, err := s.Acquire(t.Context(), q)
				if err != nil {
					t.Errorf("acquire: %v", err)
				}
				granted <- l
			}()
		}
		time.AfterFunc(300*time.Millisecond, func() { _, _ = c.release(l) }) // when both have been refused once
		if a, b := <-granted, <-granted; a.Token != b.Token || a.ID != b.ID {
			t.Errorf("got %v and %v", a, b)
		}
	}},
	{"a request id whose grant has ended is spent", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		c.mustRelease(c.acquire(q))
		c.refuse(q, lease.ErrRequestSpent)
		if s := c.get(); s.Held {
			t.Errorf("a spent request was granted: %+v", s)
		}
	}},
	{"a request id of another holder is a conflict", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		l := c.acquire(q)
		q.Holder = "worker-2"
		c.refuse(q, lease.ErrRequestConflict)
		c.holds(l)
	}},
	{"releasing again is no error", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		c.mustRelease(l)
		if s := c.mustRelease(l); s.Held || s.Token != l.Token {
			t.Errorf("got %+v", s)
		}
	}},
	{"releasing again is no error after the next grant, and leaves it alone", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		c.mustRelease(l)
		q := c.request()
		q.Holder = "worker-2"
		next := c.acquire(q)
		if s := c.mustRelease(l); s.Holder != "worker-1" || s.Token != next.Token || !s.Held {
			t.Errorf("got %+v, want it held under %d, and no holder but that of the released lease", s, next.Token)
		}
		c.holds(next)
	}},
	{"breaking again finds the lock free", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		q := lease.BreakRequest{Name: c.n, Token: l.Token, Reason: "test"}
		first, err := s.Break(t.Context(), q)
		if err != nil || first.AlreadyFree {
			t.Fatalf("break: got %+v, %v", first, err)
		}
		again, err := s.Break(t.Context(), q)
		if err != nil || !again.AlreadyFree || again.Token != first.Token {
			t.Errorf("break again: got %+v, %v, want it already free with token %d", again, err, first.Token)
		}
	}},
}
