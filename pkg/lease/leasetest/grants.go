package leasetest

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

var grants = []Promise{
	{"a free lock is granted for its TTL", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		if !l.Token.Valid() || l.ID == "" || l.Name != c.n || l.Holder != "worker-1" || l.TTL != time.Minute || l.Repeated || l.Abandoned != nil {
			t.Errorf("got %+v", l)
		}
		if d := l.ExpiresAt.Sub(l.AcquiredAt); d != time.Minute {
			t.Errorf("the lease lives for %v, want 1m", d)
		}
		if l.Remaining <= 0 || l.Remaining > time.Minute {
			t.Errorf("remaining is %v, want at most 1m", l.Remaining)
		}
		c.holds(l)
	}},
	{"a held lock is refused with its holder, token and remaining time", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		_, err := s.Acquire(t.Context(), c.request())
		var held *lease.HeldError
		if !errors.As(err, &held) || !errors.Is(err, lease.ErrHeld) {
			t.Fatalf("got %v, want a HeldError", err)
		}
		if held.Holder != "worker-1" || held.Token != l.Token || held.Remaining <= 0 || held.Remaining > time.Minute+time.Second {
			t.Errorf("got %+v", held)
		}
		if d := held.RetryAfter(); d <= 0 || d > time.Second {
			t.Errorf("retry after %v, want at most 1s", d)
		}
	}},
	{"the same holder text is not the same holder", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		c.acquire(c.request())
		c.refuse(c.request(), lease.ErrHeld)
	}},
	{"every grant has a larger token than the one before", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		last := c.acquire(c.request())
		for range 20 {
			c.mustRelease(last)
			next := c.acquire(c.request())
			if next.Token <= last.Token {
				t.Fatalf("token %d was granted after %d", next.Token, last.Token)
			}
			if next.ID == last.ID {
				t.Fatalf("two leases have the same id")
			}
			last = next
		}
	}},
	{"of many callers at once one is granted", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		granted := make(chan bool)
		const callers = 16
		for range callers {
			go func() {
				_, err := s.Acquire(t.Context(), c.request())
				if err != nil && !errors.Is(err, lease.ErrHeld) {
					t.Errorf("acquire: %v", err)
				}
				granted <- err == nil
			}()
		}
		n := 0
		for range callers {
			if <-granted {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of %d callers were granted the lock", n, callers)
		}
	}},
	{"renewing keeps the token and moves the expiry", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		r, err := c.renew(l, 2*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if r.Token != l.Token || r.ID != l.ID || r.TTL != 2*time.Minute || r.ExpiresAt.Sub(l.ExpiresAt) < time.Minute {
			t.Errorf("got %+v from %+v", r, l)
		}
		c.holds(r)
	}},
	{"renewing never shortens a lease", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		r, err := c.renew(l, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if !r.ExpiresAt.Equal(l.ExpiresAt) {
			t.Errorf("the expiry moved from %v to %v", l.ExpiresAt, r.ExpiresAt)
		}
		if r.Remaining > time.Second {
			t.Errorf("remaining is %v, more than was asked for", r.Remaining)
		}
	}},
	{"renewing or releasing a lease by a wrong id or token changes nothing", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		for name, wrong := range map[string]lease.Lease{
			"id":    {Name: l.Name, ID: lease.NewID(), Token: l.Token},
			"token": {Name: l.Name, ID: l.ID, Token: l.Token - 1},
			"lock":  {Name: lease.Name{Namespace: l.Name.Namespace, Lock: l.Name.Lock + "x"}, ID: l.ID, Token: l.Token},
		} {
			if _, err := c.renew(wrong, time.Hour); !errors.Is(err, lease.ErrLost) {
				t.Errorf("renew with a wrong %s: got %v, want ErrLost", name, err)
			}
			if _, err := c.release(wrong); !errors.Is(err, lease.ErrLost) {
				t.Errorf("release with a wrong %s: got %v, want ErrLost", name, err)
			}
		}
		c.holds(l)
	}},
	{"metadata can be read by others while the lease is held", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		q.Metadata = "job 17\n{\"é\": 1}"
		l := c.acquire(q)
		if got := c.get().Metadata; got != q.Metadata {
			t.Errorf("metadata is %q, want %q", got, q.Metadata)
		}
		c.mustRelease(l)
		c.acquire(c.request())
		if got := c.get().Metadata; got != "" {
			t.Errorf("the next lease has the metadata %q", got)
		}
	}},
}
