package main

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// Of one tenant's reads at once, those that are too many are refused, and they
// have not been made; the renewals of another come through.
func TestABurstOfReadsDoesNotTakeWhatHoldersNeed(t *testing.T) {
	url, _ := serve(t)
	c := client(url, connections())
	held, err := c.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "it"}, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	renew := func() error {
		_, err := c.Renew(t.Context(), lease.RenewRequest{Name: held.Name, LeaseID: held.ID, Token: held.Token, TTL: time.Minute})
		return err
	}
	var start sync.WaitGroup // what starts takes long here, as one machine has to start all of it
	for range 20 {
		start.Go(func() { _ = renew() })
		start.Go(func() { _, _ = c.Get(t.Context(), held.Name) })
	}
	start.Wait()
	var (
		all       sync.WaitGroup
		mu        sync.Mutex
		throttled int
	)
	for range 500 {
		all.Go(func() {
			_, err := c.Get(t.Context(), lease.Name{Namespace: "b", Lock: "x"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, lease.ErrThrottled):
				throttled++
			case err != nil && !errors.Is(err, lease.ErrUnavailable): // on a slow machine the function has no place left
				t.Errorf("a read: %v", err)
			}
		})
	}
	for range 20 {
		all.Go(func() {
			if err := renew(); err != nil {
				t.Errorf("a renewal: %v", err)
			}
		})
	}
	all.Wait()
	if throttled == 0 {
		t.Error("of 500 reads at once none was refused")
	}
}

func TestAThrottleIsOnOrOff(t *testing.T) {
	s := settings{getenv: func(name string) string { return map[string]string{"THROTTLE": "no"}[name] }}
	if _, err := s.start(t.Context(), nil); err == nil {
		t.Error("THROTTLE=no was accepted")
	}
}
