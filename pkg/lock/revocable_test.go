package lock_test

import (
	"context"
	"errors"
	"sync"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A revocable is a service that releases by request id, over one that does not.
type revocable struct {
	lease.Service

	mu      sync.Mutex
	granted map[string]lease.Lease
	revoked map[string]bool
	waiting map[string][]context.CancelCauseFunc
}

func newRevocable() *revocable {
	return &revocable{
		Service: new(lease.Memory),
		granted: make(map[string]lease.Lease), revoked: make(map[string]bool), waiting: make(map[string][]context.CancelCauseFunc),
	}
}

func (r *revocable) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	if r.revoked[q.RequestID] {
		r.mu.Unlock()
		return lease.Lease{}, lease.ErrRequestSpent
	}
	r.waiting[q.RequestID] = append(r.waiting[q.RequestID], cancel)
	r.mu.Unlock()
	l, err := r.Service.Acquire(ctx, q)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && r.revoked[q.RequestID]: // just now
		_, err = r.Service.Release(context.WithoutCancel(ctx), lease.ReleaseRequest{Name: q.Name, LeaseID: l.ID, Token: l.Token})
		return lease.Lease{}, errors.Join(lease.ErrRequestSpent, err)
	case err == nil:
		r.granted[q.RequestID] = l
	}
	return l, err
}

func (r *revocable) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	if q.RequestID == "" {
		return r.Service.Release(ctx, q)
	}
	r.mu.Lock()
	r.revoked[q.RequestID] = true
	l, held := r.granted[q.RequestID]
	for _, cancel := range r.waiting[q.RequestID] {
		cancel(lease.ErrRequestSpent)
	}
	r.mu.Unlock()
	if !held {
		return r.Service.Get(ctx, q.Name)
	}
	s, err := r.Service.Release(ctx, lease.ReleaseRequest{Name: q.Name, LeaseID: l.ID, Token: l.Token})
	if errors.Is(err, lease.ErrLost) {
		err = nil // it is over
	}
	return s, err
}
