package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// A referee knows every lock that was ever held, and looks at all of them at
// once.
type referee struct {
	t      *testing.T
	mu     sync.Mutex
	held   []*lock.Held // those that were trusted when last looked at
	grants int
	lost   int
	last   fence.Token
}

func (r *referee) granted(h *lock.Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.Token() <= r.last {
		r.t.Errorf("token %d after token %d", h.Token(), r.last)
	}
	r.last = h.Token()
	r.held = append(r.held, h)
	r.grants++
	r.look()
}

// look fails when more than one is trusted. At this instant all are asked: time
// stands still in a bubble.
func (r *referee) look() {
	trusted := r.held[:0]
	for _, h := range r.held {
		if err := h.Err(); err == nil {
			trusted = append(trusted, h)
		} else if h.Context().Err() == nil {
			r.t.Errorf("token %d is not held (%v), and its work goes on", h.Token(), err)
		} else if errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrUnconfirmed) {
			r.lost++
		}
	}
	if r.held = trusted; len(trusted) > 1 {
		r.t.Errorf("%v: %d are trusted at once, tokens %d and %d", time.Now(), len(trusted), trusted[0].Token(), trusted[1].Token())
	}
}

func TestThroughABadNetworkNoTwoAreEverTrustedAtOnce(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(memlease.Store)
				r := &referee{t: t}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				var clients sync.WaitGroup
				for i := range uint64(4) {
					draw := rand.New(rand.NewPCG(seed, i))
					c := &lock.Client{TTL: 3 * time.Second, Service: &leasetest.Flaky{
						Service: m, Seed: seed<<8 + i,
						DropRequest: 0.15, DropAnswer: 0.15, Duplicate: 0.2, Delay: 1500 * time.Millisecond,
					}}
					clients.Go(func() {
						for ctx.Err() == nil {
							hold(ctx, c, r, draw)
						}
						if err := c.Settle(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				clients.Go(func() {
					for ctx.Err() == nil {
						time.Sleep(37 * time.Millisecond)
						r.mu.Lock()
						r.look()
						r.mu.Unlock()
					}
				})
				clients.Wait()
				time.Sleep(time.Minute)
				free(t, m)
				t.Logf("%d grants, %d lost", r.grants, r.lost)
				if r.grants < 50 || r.lost < 3 {
					t.Errorf("%d grants, %d lost: not much of a test", r.grants, r.lost)
				}
			})
		})
	}
}

// hold takes the lock once, with little patience, and keeps it for a while.
func hold(ctx context.Context, c *lock.Client, r *referee, draw *rand.Rand) {
	patience, cancel := context.WithTimeout(ctx, time.Duration(draw.Int64N(int64(20*time.Second))))
	defer cancel()
	h, err := c.Acquire(patience, "a/b")
	if err != nil {
		return
	}
	r.granted(h)
	select {
	case <-h.Context().Done():
	case <-time.After(time.Duration(draw.Int64N(int64(15 * time.Second)))):
	}
	_ = h.Release(ctx) // it may have been lost, and the answer too
}
