package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// In real time, and with the race detector, everything happens at once: renewals
// are due, leases are broken, holders look and release.
func TestRenewLossAndReleaseRace(t *testing.T) {
	m := new(memlease.Store)
	var seen events
	c := &lock.Client{Service: m, TTL: time.Second, Observe: seen.observe}
	var all sync.WaitGroup
	var lost, released int
	var mu sync.Mutex
	for i := range 200 {
		all.Go(func() {
			n := lease.Name{Namespace: "a", Lock: fmt.Sprint(i)}
			h := acquire(t, c, n.String())
			due := time.After(time.Second/3 - time.Second/60) // in the midst of the renewals
			var ending sync.WaitGroup
			ending.Go(func() {
				<-due
				_, _ = m.Break(t.Context(), lease.BreakRequest{Name: n, Token: h.Token(), Reason: "test"}) // it may be released
			})
			for range 2 {
				ending.Go(func() {
					<-h.Context().Done()
					if err := h.Err(); !errors.Is(err, lock.ErrNotHeld) {
						t.Errorf("got %v after the end", err)
					}
					select {
					case <-h.Lost():
					default:
						if errors.Is(context.Cause(h.Context()), lock.ErrLost) {
							t.Error("the work ended with a loss, and Lost is open")
						}
					}
				})
				ending.Go(func() {
					for h.Err() == nil {
						_ = h.Deadline()
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			ending.Go(func() {
				time.Sleep(time.Second/3 - time.Second/60 + time.Duration(i)*100*time.Microsecond)
				_ = h.Release(t.Context()) // it may be lost
			})
			ending.Wait()
			mu.Lock()
			defer mu.Unlock()
			select {
			case <-h.Lost():
				lost++
			default:
				released++
			}
		})
	}
	all.Wait()
	t.Logf("%d lost, %d released", lost, released)
	if n := seen.count(lock.Lost); n != lost {
		t.Errorf("told of %d losses, want %d", n, lost)
	}
	if n := seen.count(lock.Granted); n != 200 {
		t.Errorf("told of %d grants, want 200", n)
	}
}
