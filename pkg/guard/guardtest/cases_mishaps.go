package guardtest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// patience is for a newer holder to get in while an older one sleeps: many times
// what the guards of the tests let a transaction idle.
var patience = 20 * time.Second

// mishaps are what happens below a guard and inside of its holders.
var mishaps = []promise{
	{"a change that is sent twice is never told as not applied when it was", func(x *trial) {
		for _, between := range []call{write("six"), claim, remove} {
			x.fresh()
			x.write(lockA, 4, "four")
			x.twice(write("five"), "five", between)
			x.fresh()
			x.write(lockA, 4, "four")
			x.twice(remove, "", between)
		}
	}, false},
	{"a change that is sent twice and meets no other is accepted", func(x *trial) {
		for _, c := range []call{write("five"), claim, remove} {
			x.fresh()
			x.write(lockA, 4, "five")
			r := x.r
			x.through(func(r Resource) Resource { return r.Twice(func() {}) })
			x.accept(c, lockA, 5)
			x.r = r
			x.stale(write("four"), lockA, 4, 5)
		}
	}, false},
	{"a holder that sleeps inside of a change keeps nobody out and wakes up to nothing", func(x *trial) {
		for _, c := range any3 {
			x.fresh()
			x.write(lockA, 4, "four")
			x.asleep(c)
		}
	}, false},
}

// through goes on with another way to the same resource.
func (x *trial) through(way func(Resource) Resource) {
	if x.err == nil {
		x.r = way(x.r)
	}
}

// twice makes a change with token 5 that is sent twice, with one of token 6 in
// between, and compares what the guard says with what came of the first.
func (x *trial) twice(c call, then string, between call) {
	if x.err != nil {
		return
	}
	plain, first := x.r, false
	x.r = x.r.Twice(func() {
		text, found, err := plain.Read(x.ctx)
		if err != nil {
			x.failf("read between the two: %w", err)
		}
		first = text == then && found == (then != "")
		x.accept(call{between.name, func(_ Resource, ctx context.Context, h fence.Holding) error {
			return between.do(plain, ctx, h)
		}}, lockA, 6)
	})
	if x.err != nil {
		return
	}
	err := c.do(x.r, x.ctx, holding(lockA, 5))
	x.r = plain
	var stale *fence.StaleError
	switch {
	case errors.As(err, &stale) && stale.NotApplied && first, errors.Is(err, fence.ErrNotApplied) && first:
		x.failf("%s: got error %w, but it was applied", c.name, err)
	case errors.Is(err, fence.ErrOtherLock), errors.Is(err, fence.ErrInvalid):
		x.failf("%s: got error %w, which is not so", c.name, err)
	case err == nil && !first:
		x.failf("%s: got no error, but it was not applied", c.name)
	}
	x.stale(c, lockA, 5, 6)
}

// asleep has a holder of token 5 stop inside of a change until 6 has written.
func (x *trial) asleep(c call) {
	if x.err != nil {
		return
	}
	plain := x.r
	slept := false
	r := plain.Asleep(func() {
		slept = true
		ctx, cancel := context.WithTimeout(x.ctx, patience)
		defer cancel()
		if err := untilDecided(func() error { return plain.Claim(ctx, holding(lockA, 6)) }); err != nil {
			x.failf("token 6 is kept out: %w", err)
		}
		if err := untilDecided(func() error { return plain.Write(ctx, holding(lockA, 6), "six") }); err != nil {
			x.failf("token 6 is kept out: %w", err)
		}
	})
	err := c.do(r, x.ctx, holding(lockA, 5))
	if err == nil || !slept {
		x.failf("%s: got error %v after sleeping (%t), want one", c.name, err, slept)
	}
	x.holds("six")
	x.stale(c, lockA, 5, 6)
}
