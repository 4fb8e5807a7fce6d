package guardtest

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/pawl-lock/pawl/pkg/fence"
)

var tokens = []promise{
	{"the first token ever is accepted, whichever it is", func(x *trial) {
		for _, token := range []fence.Token{1, 1_785_000_000_000, fence.Max} {
			x.fresh()
			x.isEmpty()
			x.write(lockA, token, "first")
			x.holds("first")
		}
	}, false},
	{"a higher token is accepted and remembered", func(x *trial) {
		x.write(lockA, 5, "five")
		x.write(lockA, 7, "seven")
		x.holds("seven")
		x.stale(write("six"), lockA, 6, 7)
		x.holds("seven")
	}, false},
	{"tokens are compared as numbers to the last digit", func(x *trial) {
		x.write(lockA, 9, "nine")
		x.write(lockA, 10, "ten")
		x.stale(write("nine"), lockA, 9, 10)
		x.write(lockA, fence.Max-1, "almost")
		x.write(lockA, fence.Max, "last")
		x.stale(write("almost"), lockA, fence.Max-1, fence.Max)
		x.holds("last")
	}, false},
	{"a holder writes as often as it likes", func(x *trial) {
		for _, text := range []string{"one", "two", "two", "three"} {
			x.write(lockA, 34, text)
			x.holds(text)
		}
	}, false},
	{"a lower token is refused and changes nothing", func(x *trial) {
		x.write(lockA, 34, "b")
		for _, c := range any3 {
			x.stale(c, lockA, 33, 34)
			x.stale(c, lockA, 1, 34)
			x.holds("b")
		}
		x.write(lockA, 34, "c") // the refused ones have not been remembered either
		x.holds("c")
	}, false},
	{"what no grant can carry is refused by name", func(x *trial) {
		wrong := []fence.Token{0, -1, fence.Max + 1, 1 << 53, math.MaxInt64, math.MinInt64}
		for _, c := range any3 {
			for _, token := range wrong {
				x.invalid(c, lockA, token)
			}
		}
		x.isEmpty()
		x.write(lockA, 1, "one")
		for _, c := range any3 {
			for _, token := range wrong {
				x.invalid(c, lockA, token)
			}
		}
		x.holds("one")
		x.write(lockA, 1, "still one")
	}, false},
	{"of two tokens that race the higher one stays", func(x *trial) {
		for range 20 {
			x.fresh()
			x.race()
		}
	}, false},
	{"a call that is cancelled before it begins is neither done nor refused", func(x *trial) {
		x.write(lockA, 5, "five")
		over, cancel := context.WithCancel(x.ctx)
		cancel()
		for _, c := range any3 {
			if x.err != nil {
				return
			}
			err := c.do(x.r, over, holding(lockA, 6))
			if err == nil || fence.Refused(err) {
				x.failf("%s: got error %v, want that it was cancelled", c.name, err)
			}
		}
		x.holds("five")
		x.write(lockA, 5, "five again")
	}, false},
}

// race has tokens 5 and 6 write at the same time.
func (x *trial) race() {
	if x.err != nil {
		return
	}
	var older, newer error
	var both sync.WaitGroup
	both.Go(func() { older = untilDecided(func() error { return x.r.Write(x.ctx, holding(lockA, 5), "five") }) })
	both.Go(func() { newer = untilDecided(func() error { return x.r.Write(x.ctx, holding(lockA, 6), "six") }) })
	both.Wait()
	if newer != nil || older != nil && !errors.Is(older, fence.ErrStale) {
		x.failf("token 5 got error %v, token 6 got %v, want at most that 5 is stale", older, newer)
	}
	x.holds("six")
	x.stale(write("five again"), lockA, 5, 6)
}

// untilDecided repeats what had no effect.
func untilDecided(call func() error) error {
	for range 100 {
		if err := call(); !errors.Is(err, fence.ErrNotApplied) {
			return err
		}
	}
	return errors.New("not applied 100 times in a row")
}
