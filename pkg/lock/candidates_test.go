package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// terms records who leads, and fails when two do.
type terms struct {
	t       *testing.T
	mu      sync.Mutex
	leads   string
	changes int
	last    fence.Token
}

func (r *terms) begin(who string, term fence.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads != "" {
		r.t.Errorf("%s leads while %s does", who, r.leads)
	}
	if term <= r.last {
		r.t.Errorf("term %d after term %d", term, r.last)
	}
	r.leads, r.last = who, term
	r.changes++
}

func (r *terms) end(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads == who {
		r.leads = ""
	}
}

// allowTwo is for when nothing can keep the leader from leading until its next
// renewal.
func (r *terms) allowTwo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leads = ""
}

// pass lets time pass, and everybody do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A candidate leads until its context ends or it is told to resign.
type candidate struct {
	name   string
	resign chan error
	lost   []error
}

func (c *candidate) run(ctx context.Context, s lease.Service, r *terms) error {
	leads := false
	e := lock.Election{
		Client: &lock.Client{Service: s, Holder: c.name},
		Lock:   "a/b",
		OnElected: func(ctx context.Context, term fence.Token) error {
			r.begin(c.name, term)
			defer r.end(c.name)
			leads = true
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-c.resign:
				leads = false
				return err
			}
		},
		OnLost: func(_ fence.Token, err error) {
			if !leads {
				r.t.Errorf("%s lost what it had not won", c.name)
			}
			leads = false
			c.lost = append(c.lost, err)
		},
	}
	return e.Run(ctx)
}

// election runs three candidates until f returns.
func election(t *testing.T, s lease.Service, f func(r *terms, all map[string]*candidate)) {
	synctest.Test(t, func(t *testing.T) {
		r := &terms{t: t}
		ctx, cancel := context.WithCancel(t.Context())
		all := make(map[string]*candidate)
		var running sync.WaitGroup
		for _, name := range []string{"one", "two", "three"} {
			c := &candidate{name: name, resign: make(chan error)}
			all[name] = c
			running.Go(func() {
				if err := c.run(ctx, s, r); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: got %v, want that it was cancelled", name, err)
				}
			})
		}
		pass(time.Minute)
		f(r, all)
		cancel()
		running.Wait()
		time.Sleep(time.Minute)
	})
}
