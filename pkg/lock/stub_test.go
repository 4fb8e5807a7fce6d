package lock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

const (
	ttl    = 15 * time.Second // the defaults
	margin = ttl / 10
	skew   = time.Second
)

// A stub is a service in front of another. It records what arrives, and does
// what it is told instead of passing it on. The fields are set before the first
// call.
type stub struct {
	lease.Service
	acquire func(context.Context, lease.AcquireRequest) (lease.Lease, error)
	renew   func(context.Context, lease.RenewRequest) (lease.Lease, error)
	release func(context.Context, lease.ReleaseRequest) (lease.State, error)

	mu    sync.Mutex
	calls []call
}

// A call is a request that arrived at a stub.
type call struct {
	kind    string
	at      time.Time
	acquire lease.AcquireRequest
}

func newStub() *stub { return &stub{Service: new(memlease.Store)} }

func (s *stub) record(c call) {
	c.at = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// of returns the calls of one kind.
func (s *stub) of(kind string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool { return c.kind != kind })
}

func (s *stub) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	s.record(call{kind: "acquire", acquire: q})
	if s.acquire != nil {
		return s.acquire(ctx, q)
	}
	return s.Service.Acquire(ctx, q)
}

func (s *stub) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	s.record(call{kind: "renew"})
	if s.renew != nil {
		return s.renew(ctx, q)
	}
	return s.Service.Renew(ctx, q)
}

func (s *stub) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	s.record(call{kind: "release"})
	if s.release != nil {
		return s.release(ctx, q)
	}
	return s.Service.Release(ctx, q)
}

// silence is a network that swallows: there is no answer, ever.
func silence[Q, A any](ctx context.Context, _ Q) (A, error) {
	<-ctx.Done()
	var none A
	return none, fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, context.Cause(ctx))
}

// unanswered carries a call out and loses the answer.
func unanswered[Q, A any](do func(context.Context, Q) (A, error)) func(context.Context, Q) (A, error) {
	return func(ctx context.Context, q Q) (A, error) {
		_, _ = do(ctx, q) // that is the answer
		var none A
		return none, lease.ErrOutcomeUnknown
	}
}

// failing answers with err and does nothing.
func failing[Q, A any](err error) func(context.Context, Q) (A, error) {
	return func(context.Context, Q) (A, error) {
		var none A
		return none, err
	}
}

// during has calls made within a span of time treated by fault, the others by do.
func during[Q, A any](from, to time.Time, fault, do func(context.Context, Q) (A, error)) func(context.Context, Q) (A, error) {
	return func(ctx context.Context, q Q) (A, error) {
		if now := time.Now(); now.Before(from) || !now.Before(to) {
			return do(ctx, q)
		}
		return fault(ctx, q)
	}
}

// inTurn treats the first calls as told, one each, and the others by the last.
func inTurn[Q, A any](each ...func(context.Context, Q) (A, error)) func(context.Context, Q) (A, error) {
	var mu sync.Mutex
	return func(ctx context.Context, q Q) (A, error) {
		mu.Lock()
		do := each[0]
		if len(each) > 1 {
			each = each[1:]
		}
		mu.Unlock()
		return do(ctx, q)
	}
}

func acquire(t *testing.T, c *lock.Client, name string) *lock.Held {
	t.Helper()
	h, err := c.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func release(t *testing.T, h *lock.Held) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// events records what a client tells.
type events struct {
	mu  sync.Mutex
	all []lock.Event
}

func (e *events) observe(_ context.Context, event lock.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// kinds returns what was told, in order, without repeats in a row.
func (e *events) kinds() (kinds []lock.EventKind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		kinds = append(kinds, event.Kind)
	}
	return slices.Compact(kinds)
}

func (e *events) count(kind lock.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		if event.Kind == kind {
			n++
		}
	}
	return n
}
