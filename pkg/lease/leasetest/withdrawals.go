package leasetest

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

func (c client) withdraw(q lease.AcquireRequest) lease.State {
	c.Helper()
	s, err := c.s.Release(c.Context(), lease.ReleaseRequest{Name: q.Name, RequestID: q.RequestID})
	if err != nil {
		c.Fatalf("release by request id: %v", err)
	}
	return s
}

var withdrawals = []Promise{
	{"a release by request id ends the lease that the request got", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		l := c.acquire(q)
		if s := c.withdraw(q); s.Held || s.Token != l.Token || s.Holder != l.Holder || !s.AvailableAt.IsZero() {
			t.Errorf("got %+v, want it free with token %d", s, l.Token)
		}
		_, err := c.renew(l, time.Minute)
		c.want(err, lease.ErrLost)
		if next := c.acquire(c.request()); next.Abandoned != nil {
			t.Errorf("a released lease is called abandoned: %+v", next.Abandoned)
		}
	}},
	{"a release by request id ends no other lease, and names no other holder", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		q := c.request()
		for range 2 {
			if s := c.withdraw(q); !s.Held || s.Token != l.Token || s.Holder != "" || s.Metadata != "" {
				t.Errorf("got %+v, want it held under %d by nobody who is named", s, l.Token)
			}
		}
		c.holds(l)
	}},
	{"a release by request id of a lock of which nothing is recorded leaves it so", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		if s := c.withdraw(c.request()); s.Held || s.Token != 0 {
			t.Errorf("got %+v", s)
		}
		if got := c.get(); got != (lease.State{Name: c.n}) {
			t.Errorf("the lock is %+v, want it never granted", got)
		}
		if b, err := s.Break(t.Context(), lease.BreakRequest{Name: c.n, Token: 1, Reason: "test"}); err != nil || !b.AlreadyFree || b.Token != 0 {
			t.Errorf("break: got %+v, %v", b, err)
		}
	}},
	{"a request that arrives after its release by request id is granted nothing", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		c.withdraw(q)
		c.refuse(q, lease.ErrRequestSpent)
		c.mustRelease(c.acquire(c.request()))
		c.refuse(q, lease.ErrRequestSpent)
		q.Metadata = "a grant of another form"
		c.refuse(q, lease.ErrRequestSpent)
		c.withdraw(q)
		c.refuse(q, lease.ErrRequestSpent)
	}},
	// Another try of it may still be waiting somewhere when the grant is forgotten.
	{"a request whose lease was released by request id stays spent when others have had the lock", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		c.acquire(q)
		c.withdraw(q)
		for range 2 {
			c.mustRelease(c.acquire(c.request()))
			c.refuse(q, lease.ErrRequestSpent)
		}
		if s := c.withdraw(q); s.Held {
			t.Errorf("got %+v", s)
		}
	}},
	{"a release by request id ends the wait of the request and no other", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		q, other := c.request(), c.request()
		q.Wait, other.Wait = 15*time.Second, 15*time.Second
		started := time.Now()
		ended, granted := make(chan error), make(chan lease.Lease)
		for range 2 {
			go func() {
				_, err := s.Acquire(t.Context(), q)
				ended <- err
			}()
		}
		go func() {
			l, err := s.Acquire(t.Context(), other)
			if err != nil {
				t.Errorf("the other waiter: %v", err)
			}
			granted <- l
		}()
		time.AfterFunc(300*time.Millisecond, func() { // when all have been refused once
			if _, err := s.Release(t.Context(), lease.ReleaseRequest{Name: c.n, RequestID: q.RequestID}); err != nil {
				t.Errorf("release by request id: %v", err)
			}
		})
		for range 2 {
			c.want(<-ended, lease.ErrRequestSpent)
		}
		if d := time.Since(started); d > 10*time.Second {
			t.Errorf("the wait went on for %v", d)
		}
		c.holds(l)
		c.mustRelease(l)
		c.holds(<-granted)
	}},
	{"a release is by lease or by request id, not by both and not by neither", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		q := c.request()
		l := c.acquire(q)
		for field, q := range map[string][]lease.ReleaseRequest{
			"lease_id": {{Name: c.n}, {Name: c.n, Token: l.Token}},
			"token":    {{Name: c.n, LeaseID: l.ID}},
			"request_id": {
				{Name: c.n, RequestID: "short"},
				{Name: c.n, RequestID: q.RequestID, LeaseID: l.ID, Token: l.Token},
				{Name: c.n, RequestID: q.RequestID, LeaseID: l.ID},
				{Name: c.n, RequestID: q.RequestID, Token: l.Token},
			},
			"lock": {{Name: lease.Name{Namespace: c.n.Namespace}, RequestID: q.RequestID}},
		} {
			for _, q := range q {
				_, err := s.Release(t.Context(), q)
				var invalid *lease.InvalidError
				if !errors.As(err, &invalid) || invalid.Field != field {
					t.Errorf("%+v: got %v, want it refused for %s", q, err, field)
				}
			}
		}
		c.holds(l)
	}},
}
