package leasetest

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// short returns a request for the shortest lease there is.
func (c client) short() lease.AcquireRequest {
	q := c.request()
	q.TTL = time.Second
	return q
}

var endings = []Promise{
	{"a released lock is free at once", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		if s := c.mustRelease(l); s.Held || s.Token != l.Token || !s.AvailableAt.IsZero() {
			t.Errorf("got %+v, want it free with token %d", s, l.Token)
		}
		next := c.acquire(c.request())
		if next.Abandoned != nil {
			t.Errorf("a released lease is called abandoned: %+v", next.Abandoned)
		}
		if _, err := c.renew(l, time.Minute); !errors.Is(err, lease.ErrLost) {
			t.Errorf("renewing a released lease: got %v, want ErrLost", err)
		}
	}},
	{"a lease that ran out goes to the next holder, who is told", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.short())
		next := c.takeOver()
		if next.Token <= l.Token {
			t.Errorf("token %d was granted after %d", next.Token, l.Token)
		}
		if next.AcquiredAt.Sub(l.ExpiresAt) < time.Second {
			t.Errorf("granted at %v, less than the skew of 1s after %v", next.AcquiredAt, l.ExpiresAt)
		}
		a := next.Abandoned
		if a == nil || a.Token != l.Token || a.Holder != l.Holder || !a.ExpiredAt.Equal(l.ExpiresAt) {
			t.Errorf("abandoned is %+v, want that of %+v", a, l)
		}
		if next.Remaining <= 0 {
			t.Errorf("remaining is %v after the wait", next.Remaining)
		}
	}},
	{"the late release of a lease that ran out does not disturb the next holder", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.short())
		next := c.takeOver()
		_, err := c.release(l)
		c.want(err, lease.ErrLost)
		_, err = c.renew(l, time.Minute)
		c.want(err, lease.ErrLost)
		c.holds(next)
	}},
	{"renewing never revives a lease that ran out", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.short())
		c.mustRelease(c.takeOver())
		_, err := c.renew(l, time.Minute)
		c.want(err, lease.ErrLost)
		if s := c.get(); s.Held {
			t.Errorf("the lock is held again: %+v", s)
		}
	}},
	{"a lock delay keeps an abandoned lock from the next holder, not a released one", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.short()
		q.LockDelay = 2 * time.Second
		l := c.acquire(q)
		next := c.takeOver()
		if d := next.AcquiredAt.Sub(l.ExpiresAt); d < 3*time.Second {
			t.Errorf("granted %v after the expiry, want skew and lock delay, 3s", d)
		}
		c.mustRelease(next)
		q = c.short()
		q.LockDelay = time.Minute
		c.mustRelease(c.acquire(q))
		c.acquire(c.request())
	}},
	{"a minimum hold keeps a released lock from the next holder", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		q.MinHold = 2 * time.Second
		l := c.acquire(q)
		state := c.mustRelease(l)
		if state.Held || state.AvailableAt.Sub(l.AcquiredAt) != 2*time.Second {
			t.Errorf("got %+v, want it free and available 2s after %v", state, l.AcquiredAt)
		}
		c.refuse(c.request(), lease.ErrHeld)
		if next := c.takeOver(); next.AcquiredAt.Sub(l.AcquiredAt) < 2*time.Second {
			t.Errorf("granted at %v, want at least 2s after %v", next.AcquiredAt, l.AcquiredAt)
		}
	}},
	{"a break ends the lease that it names and uses up a token", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		b, err := s.Break(t.Context(), lease.BreakRequest{Name: c.n, Token: l.Token, Reason: "worker-1 is gone"})
		if err != nil {
			t.Fatal(err)
		}
		if b.AlreadyFree || b.Held || b.Token <= l.Token {
			t.Errorf("got %+v, want it free with a token above %d", b, l.Token)
		}
		_, err = c.renew(l, time.Minute)
		c.want(err, lease.ErrLost)
		_, err = c.release(l)
		c.want(err, lease.ErrLost)
		if next := c.acquire(c.request()); next.Token <= b.Token {
			t.Errorf("token %d was granted after the break used %d", next.Token, b.Token)
		}
	}},
	{"a break of an older token is refused with the current one", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		old := c.acquire(c.request())
		c.mustRelease(old)
		l := c.acquire(c.request())
		_, err := s.Break(t.Context(), lease.BreakRequest{Name: c.n, Token: old.Token, Reason: "too late"})
		var changed *lease.TokenChangedError
		if !errors.As(err, &changed) || changed.Token != l.Token {
			t.Errorf("got %v, want a TokenChangedError with %d", err, l.Token)
		}
		c.holds(l)
	}},
	{"a lock of which nothing is recorded is free", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		if got := c.get(); got != (lease.State{Name: c.n}) {
			t.Errorf("got %+v", got)
		}
		b, err := s.Break(t.Context(), lease.BreakRequest{Name: c.n, Token: 1, Reason: "test"})
		if err != nil || !b.AlreadyFree || b.Token != 0 {
			t.Errorf("break: got %+v, %v", b, err)
		}
	}},
}
