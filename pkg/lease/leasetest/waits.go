package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

var waits = []Promise{
	{"a waiter gets the lock when it is released", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		got := make(chan lease.Lease)
		go func() {
			defer close(got)
			q := c.request()
			q.Wait = 15 * time.Second
			if l, err := s.Acquire(t.Context(), q); err == nil {
				got <- l
			}
		}()
		released := time.Now().Add(300 * time.Millisecond) // when the waiter has been refused once
		time.AfterFunc(time.Until(released), func() { _, _ = c.release(l) })
		next, ok := <-got
		if !ok || next.Token <= l.Token {
			t.Fatalf("got %+v, want a grant after token %d", next, l.Token)
		}
		t.Logf("the lock changed hands in %v", time.Since(released).Round(time.Millisecond))
	}},
	{"a wait that is over is refused", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		q := c.request()
		q.Wait = 700 * time.Millisecond
		started := time.Now()
		c.refuse(q, lease.ErrHeld)
		if d := time.Since(started); d < q.Wait {
			t.Errorf("refused after %v, before the wait of %v was over", d, q.Wait)
		}
		c.holds(l)
	}},
	{"cancelling ends a wait at once, and nothing is granted later", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		l := c.acquire(c.request())
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error)
		go func() {
			q := c.request()
			q.Wait = 15 * time.Second
			_, err := s.Acquire(ctx, q)
			refused <- err
		}()
		time.AfterFunc(200*time.Millisecond, cancel)
		err := <-refused
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		c.holds(l)
	}},
	{"a context that has ended sends nothing", func(t *testing.T, s lease.Service) {
		c := on(t, s)
		_, err := s.Acquire(cancelled(t.Context()), c.request())
		c.want(err, context.Canceled)
		if got := c.get(); got.Token != 0 {
			t.Errorf("the lock was granted: %+v", got)
		}
	}},
}
