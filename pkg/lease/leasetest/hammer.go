package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Hammer has many callers compete for one lock. They take it, renew it now
// and then, and release it, or let it run out.
type Hammer struct {
	Service lease.Service
	Name    lease.Name
	Callers int
	TTL     time.Duration // of each lease
	Wait    time.Duration // for the lock, per request
	Abandon float64       // the probability that a lease is not released
}

// Run hammers until ctx ends and returns what happened. Every call is answered:
// those under way at the end are waited for, and those whose outcome is unknown
// are repeated until it is known, for at most a minute.
func (h Hammer) Run(ctx context.Context) *History {
	history := new(History)
	var callers sync.WaitGroup
	for i := range h.Callers {
		callers.Go(func() {
			for ctx.Err() == nil {
				h.round(ctx, i, history)
			}
		})
	}
	callers.Wait()
	return history
}

func (h Hammer) round(ctx context.Context, caller int, history *History) {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	q := lease.AcquireRequest{
		Name:      h.Name,
		TTL:       h.TTL,
		Wait:      h.Wait,
		Holder:    fmt.Sprintf("caller %d", caller),
		RequestID: lease.NewID(),
	}
	l, err := observe(patient, history, Acquire, caller, lease.Lease{}, func() (lease.Lease, error) {
		return h.Service.Acquire(patient, q)
	})
	if err != nil {
		return
	}
	for range rand.IntN(3) {
		if !h.renew(patient, caller, &l, history) {
			return
		}
	}
	if rand.Float64() < h.Abandon {
		return
	}
	_, _ = observe(patient, history, Release, caller, l, func() (lease.Lease, error) {
		_, err := h.Service.Release(patient, lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token})
		return l, err
	})
}

func (h Hammer) renew(ctx context.Context, caller int, l *lease.Lease, history *History) bool {
	renewed, err := observe(ctx, history, Renew, caller, *l, func() (lease.Lease, error) {
		return h.Service.Renew(ctx, lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: h.TTL})
	})
	if err == nil {
		*l = renewed
	}
	return err == nil
}

// observe makes one call, repeats it until its outcome is known, and records it.
// A release that is refused after a try of unknown outcome was that try.
func observe(ctx context.Context, history *History, kind Kind, caller int, about lease.Lease, call func() (lease.Lease, error)) (lease.Lease, error) {
	op := Op{Kind: kind, Caller: caller, Lease: about, Called: time.Now()}
	for repeated := false; ; repeated = true {
		l, err := call()
		if errors.Is(err, lease.ErrOutcomeUnknown) && ctx.Err() == nil {
			continue
		}
		if kind == Release && repeated && errors.Is(err, lease.ErrLost) {
			l, err = about, nil
		}
		if err == nil {
			op.Lease = l
		}
		op.Err, op.Ended = err, time.Now()
		history.Add(op)
		return op.Lease, err
	}
}
