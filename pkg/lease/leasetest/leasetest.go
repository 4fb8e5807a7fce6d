// Package leasetest is what every [lease.Service] promises, as tests: one suite
// for the service in memory, in DynamoDB, and behind any number of proxies and
// gateways. It also has the means to put a service under stress: [Flaky]
// injects faults, and a [History] of what happened is checked for what must
// never happen.
//
// It tests one service at a time from outside. That an error that only the
// store can cause is translated rightly is for the store's own tests.
package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Promise is one test of the suite.
type Promise struct {
	Name  string
	Check func(*testing.T, lease.Service)
}

// Promises returns the suite. Its checks use locks of their own, so they may
// run at the same time on one service. Run them one by one where [Run] cannot
// be used, in a synctest bubble for instance.
func Promises() []Promise {
	var all []Promise
	for _, part := range [][]Promise{grants, repeats, endings, withdrawals, waits, names} {
		all = append(all, part...)
	}
	return all
}

// Run checks every promise, each on a service that open returns. The services
// must have the default [protocol.Rules].
func Run(t *testing.T, open func(*testing.T) lease.Service) {
	for _, p := range Promises() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			p.Check(t, open(t))
		})
	}
}

// A client calls a service and ends the test when something unexpected happens.
type client struct {
	*testing.T
	s lease.Service
	n lease.Name
}

// on returns a client for a lock that no other test uses.
func on(t *testing.T, s lease.Service) client {
	return client{t, s, lease.Name{Namespace: "suite", Lock: t.Name() + "/" + lease.NewID()}}
}

func (c client) request() lease.AcquireRequest {
	return lease.AcquireRequest{Name: c.n, TTL: time.Minute, Holder: "worker-1", RequestID: lease.NewID()}
}

func (c client) acquire(q lease.AcquireRequest) lease.Lease {
	c.Helper()
	l, err := c.s.Acquire(c.Context(), q)
	if err != nil {
		c.Fatalf("acquire: %v", err)
	}
	return l
}

func (c client) refuse(q lease.AcquireRequest, want error) {
	c.Helper()
	l, err := c.s.Acquire(c.Context(), q)
	if !errors.Is(err, want) {
		c.Fatalf("acquire: got token %d, error %v, want %v", l.Token, err, want)
	}
}

// takeOver acquires the lock as soon as its lease has run out.
func (c client) takeOver() lease.Lease {
	c.Helper()
	q := c.request()
	q.Holder, q.Wait = "worker-2", 15*time.Second
	return c.acquire(q)
}

func (c client) renew(l lease.Lease, ttl time.Duration) (lease.Lease, error) {
	return c.s.Renew(c.Context(), lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: ttl})
}

func (c client) release(l lease.Lease) (lease.State, error) {
	return c.s.Release(c.Context(), lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token})
}

func (c client) mustRelease(l lease.Lease) lease.State {
	c.Helper()
	s, err := c.release(l)
	if err != nil {
		c.Fatalf("release: %v", err)
	}
	return s
}

func (c client) get() lease.State {
	c.Helper()
	s, err := c.s.Get(c.Context(), c.n)
	if err != nil {
		c.Fatalf("get: %v", err)
	}
	return s
}

// holds checks that the lock is still held by l and by nothing else.
func (c client) holds(l lease.Lease) {
	c.Helper()
	if s := c.get(); !s.Held || s.Token != l.Token || s.Holder != l.Holder || !s.ExpiresAt.Equal(l.ExpiresAt) {
		c.Fatalf("state is %+v, want it held by %+v", s, l)
	}
}

// want checks that an operation failed with the error that it should.
func (c client) want(err, target error) {
	c.Helper()
	if !errors.Is(err, target) {
		c.Fatalf("got error %v, want %v", err, target)
	}
}

func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
