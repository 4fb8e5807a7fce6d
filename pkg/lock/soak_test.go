package lock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// A limited service has places for so many calls at a time, each of which takes
// 100 ms. Whoever finds none waits in line, or is refused.
type limited struct {
	lease.Service
	places   chan struct{}
	queues   bool
	down     atomic.Bool
	swallows bool // what it gets while it is down, or refuses

	sent, refused, underWay, most atomic.Int64
}

const took = 100 * time.Millisecond

func (l *limited) call(ctx context.Context) error {
	l.sent.Add(1)
	now := l.underWay.Add(1)
	defer l.underWay.Add(-1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
	switch {
	case l.down.Load() && l.swallows:
		<-ctx.Done()
		return fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, ctx.Err())
	case l.down.Load() && !l.queues:
		l.refused.Add(1)
		return &lease.RetryError{Err: lease.ErrThrottled, After: time.Second}
	case !l.queues:
		select {
		case l.places <- struct{}{}:
		default:
			time.Sleep(took / 10)
			l.refused.Add(1)
			return &lease.RetryError{Err: lease.ErrThrottled, After: time.Second}
		}
	default:
		select {
		case l.places <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, ctx.Err())
		}
	}
	defer func() { <-l.places }()
	for l.down.Load() { // it stands still
		time.Sleep(took)
	}
	time.Sleep(took)
	return nil
}

func (l *limited) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	if err := l.call(ctx); err != nil {
		return lease.Lease{}, err
	}
	return l.Service.Acquire(ctx, q)
}

func (l *limited) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	if err := l.call(ctx); err != nil {
		return lease.Lease{}, err
	}
	return l.Service.Renew(ctx, q)
}

// TestSoakManyLocks holds thousands of locks of one process at a service that can
// do 1,000 calls a second, through outages in which it stands still, swallows what
// it gets, or refuses.
func TestSoakManyLocks(t *testing.T) {
	all, outages := []int{4000}, []time.Duration{6 * time.Second}
	if rigor.Rounds(t) > 1 {
		all, outages = []int{1000, 2500, 4000, 4500}, []time.Duration{0, 3 * time.Second, 6 * time.Second}
	}
	for name, kind := range map[string]struct{ queues, swallows bool }{
		"it queues and stands still": {queues: true},
		"it queues and swallows":     {queues: true, swallows: true},
		"it says 429":                {},
		"it says 429 and swallows":   {swallows: true},
	} {
		for _, n := range all {
			for _, outage := range outages {
				t.Run(fmt.Sprint(name, ", ", n, " locks, ", outage), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { many(t, &limited{queues: kind.queues, swallows: kind.swallows}, n, outage) })
				})
			}
		}
	}
}

func many(t *testing.T, s *limited, n int, outage time.Duration) {
	s.Service = new(memlease.Store)
	s.places = make(chan struct{}, 100)
	c := &lock.Client{Service: s}
	held := make([]*lock.Held, n)
	var acquiring sync.WaitGroup
	for i := range n { // within 5 s
		acquiring.Go(func() {
			h, err := c.Acquire(t.Context(), fmt.Sprint("a/", i))
			if err != nil {
				t.Error(err)
			}
			held[i] = h
		})
		time.Sleep(5 * time.Second / time.Duration(n))
	}
	acquiring.Wait()
	time.Sleep(20 * time.Second)
	s.most.Store(0)
	s.down.Store(true)
	time.Sleep(outage)
	goroutines := runtime.NumGoroutine()
	s.down.Store(false)
	time.Sleep(40 * time.Second)
	lost := 0
	for _, h := range held {
		if h.Err() != nil {
			lost++
		}
	}
	t.Logf("%d of %d lost; %d calls, %d refused, %d under way at the most; %d goroutines in the outage", lost, n, s.sent.Load(), s.refused.Load(), s.most.Load(), goroutines)
	if lost > 0 && n <= 4000 {
		t.Errorf("%d lost at %d %% of the capacity, want none", lost, n/50)
	}
	if most := s.most.Load(); most > 1500 {
		t.Errorf("%d calls under way at a time, want a bound", most)
	}
	for _, h := range held {
		go h.Release(t.Context())
	}
	time.Sleep(time.Minute)
}
