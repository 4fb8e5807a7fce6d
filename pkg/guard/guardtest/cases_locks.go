package guardtest

import (
	"errors"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// locks are about tokens that cannot be compared.
var locks = []promise{
	{"a resource takes the tokens of one lock, that of its first write", func(x *trial) {
		x.write(lockA, 5, "five")
		for _, late := range []string{lockB, lockC} {
			for _, c := range any3 {
				x.other(c, late, 4, lockA)
				x.other(c, late, 5, lockA)
				x.other(c, late, 100, lockA)
			}
		}
		x.holds("five")
		x.write(lockA, 5, "still five")
		x.holds("still five")
	}, false},
	{"neither a delete nor a restart frees a resource for another lock", func(x *trial) {
		x.write(lockA, 5, "five")
		x.accept(remove, lockA, 5)
		x.other(write("taken over"), lockB, 100, lockA)
		x.restart()
		x.other(write("taken over"), lockB, 100, lockA)
		x.isEmpty()
		x.write(lockA, 5, "again")
	}, false},
	{"where several locks are declared each token is compared with its own", func(x *trial) {
		x.fresh(lockA, lockB)
		x.write(lockA, 100, "a 100")
		x.write(lockB, 5, "b 5")
		x.holds("b 5")
		for _, c := range any3 {
			x.stale(c, lockA, 99, 100)
			x.stale(c, lockB, 4, 5)
		}
		x.holds("b 5")
		x.write(lockA, 100, "a again")
		x.write(lockB, 6, "b 6")
		x.accept(claim, lockA, 101)
		x.write(lockB, 6, "b again")
		x.holds("b again")
	}, true},
	{"where several locks are declared nothing of one forgets another's token", func(x *trial) {
		for _, c := range any3 {
			x.fresh(lockA, lockB)
			x.write(lockA, 100, "a")
			x.write(lockB, 5, "b")
			x.accept(c, lockA, 101)
			x.stale(write("late"), lockB, 4, 5)
			x.accept(c, lockB, 6)
			x.stale(write("late"), lockA, 100, 101)
			x.restart(lockA, lockB)
			x.stale(write("late"), lockA, 100, 101)
			x.stale(write("late"), lockB, 5, 6)
		}
	}, true},
	{"a lock that was not declared is refused", func(x *trial) {
		for _, first := range any3 {
			x.fresh(lockA, lockB)
			x.other(first, lockC, 1, "")
			x.isEmpty()
			x.accept(first, lockB, 5)
			for _, c := range any3 {
				x.other(c, lockC, 100, "")
			}
			x.accept(claim, lockA, 1)
		}
	}, true},
	{"a lock can be added by declaring it and is then needed", func(x *trial) {
		for _, c := range any3 {
			x.fresh()
			x.write(lockA, 5, "five")
			x.restart(lockB, lockC)
			x.other(c, lockB, 9, lockA)
			x.restart(lockA, lockB)
			x.accept(c, lockB, 3)
			x.seen(map[string]fence.Token{lockA: 5, lockB: 3})
			x.stale(c, lockA, 4, 5)
			x.stale(c, lockB, 2, 3)
			x.write(lockA, 6, "six")
			x.restart()
			for _, late := range any3 {
				x.other(late, lockA, 100, "")
				x.other(late, lockB, 100, "")
			}
			x.holds("six")
			x.restart(lockC, lockB, lockA)
			x.accept(c, lockC, 1)
			x.stale(c, lockA, 5, 6)
			x.stale(c, lockB, 2, 3)
			x.fresh()
			x.write(lockA, 5, "five")
			x.restart(lockA, lockB, lockC)
			x.accept(c, lockB, 3)
			x.seen(map[string]fence.Token{lockA: 5, lockB: 3, lockC: 0})
			x.restart(lockA, lockB)
			x.other(c, lockB, 3, "")
		}
	}, true},
	{"all that are declared are bound from the first change on", func(x *trial) {
		for _, c := range any3 {
			x.fresh(lockA, lockB)
			x.accept(c, lockA, 5)
			x.restart()
			x.other(c, lockA, 5, "")
			x.restart(lockA, lockB)
			x.accept(c, lockA, 5)
		}
	}, true},
	{"a holder of two locks has each token compared", func(x *trial) {
		x.fresh(lockA, lockB)
		both := func(a, b fence.Token) fence.Holding {
			return fence.Holding{Lock: lockA, Token: a, With: map[string]fence.Token{lockB: b}}
		}
		for _, c := range any3 {
			x.try(c, both(100, 5), nil)
			x.try(c, both(100, 4), &fence.StaleError{Lock: lockB, Token: 4, Seen: 5})
			x.try(c, both(99, 6), &fence.StaleError{Lock: lockA, Token: 99, Seen: 100})
			x.stale(c, lockA, 99, 100)
			x.stale(c, lockB, 4, 5)
			x.try(c, both(100, 0), fence.ErrInvalid)
		}
		x.seen(map[string]fence.Token{lockA: 100, lockB: 5})
	}, true},
}

// try makes a call of any holding. Of a StaleError it compares what is compared.
func (x *trial) try(c call, h fence.Holding, want error) {
	if x.err != nil {
		return
	}
	err := c.do(x.r, x.ctx, h)
	var got, stale *fence.StaleError
	switch {
	case errors.As(want, &stale):
		if !errors.As(err, &got) || got.Lock != stale.Lock || got.Token != stale.Token || got.Seen != stale.Seen {
			x.failf("%s by %v: got error %v, want %v", c.name, h, err, want)
		}
	case !errors.Is(err, want):
		x.failf("%s by %v: got error %v, want %v", c.name, h, err, want)
	}
}
