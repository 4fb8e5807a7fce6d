package guardtest

import (
	"maps"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// repairs are about what a guard knows: how to see, change and lose it.
var repairs = []promise{
	{"what a resource has seen can be read", func(x *trial) {
		x.seen(map[string]fence.Token{})
		x.write(lockA, 5, "five")
		x.seen(map[string]fence.Token{lockA: 5})
		x.accept(claim, lockA, 6)
		x.accept(remove, lockA, 7)
		x.seen(map[string]fence.Token{lockA: 7})
		x.stale(claim, lockA, 6, 7)
		x.seen(map[string]fence.Token{lockA: 7})
		x.fresh(lockA, lockB)
		x.write(lockB, 5, "five")
		x.seen(map[string]fence.Token{lockA: 0, lockB: 5})
		x.accept(claim, lockA, 9)
		x.restart(lockA, lockB)
		x.seen(map[string]fence.Token{lockA: 9, lockB: 5})
	}, true},
	{"a wrong token is repaired", func(x *trial) {
		x.write(lockA, fence.Max, "wrong")
		x.stale(write("right"), lockA, 5, fence.Max)
		x.reset(lockA, 5)
		x.holds("wrong")
		x.write(lockA, 5, "right")
		x.holds("right")
		for _, c := range any3 {
			x.stale(c, lockA, 4, 5)
		}
	}, false},
	{"a resource is given to another lock by a reset only", func(x *trial) {
		x.write(lockA, 1_796_000_000_000, "of a")
		x.other(write("of b"), lockB, 5, lockA)
		x.reset(lockB, 5)
		x.holds("of a")
		x.seen(map[string]fence.Token{lockB: 5})
		x.write(lockB, 5, "of b")
		x.other(write("of a"), lockA, fence.Max, lockB)
		x.restart()
		x.stale(write("late"), lockB, 4, 5)
		x.holds("of b")
	}, false},
	{"a reset is not for what can be nobody's", func(x *trial) {
		x.write(lockA, 5, "five")
		for _, h := range []fence.Holding{
			{}, holding(lockA, 0), holding("", 5), holding(lockA, fence.Max+1), holding("a\nb", 5),
		} {
			if x.err == nil && !fence.Refused(x.r.Reset(x.ctx, h)) {
				x.failf("reset to %v", h)
			}
		}
		x.stale(write("four"), lockA, 4, 5)
	}, false},
	{"what has been without a new token for long is forgotten on demand and nothing else", func(x *trial) {
		x.write(lockA, 5, "five")
		x.accept(remove, lockA, 6)
		x.prune(time.Now().Add(-time.Hour))
		x.stale(write("five"), lockA, 5, 6)
		x.seen(map[string]fence.Token{lockA: 6})
		x.prune(time.Now().Add(time.Hour))
		x.isEmpty()
		x.seen(map[string]fence.Token{})
		x.write(lockB, 1, "of another lock")
		x.holds("of another lock")
	}, true},
}

func (x *trial) seen(want map[string]fence.Token) {
	if x.err != nil {
		return
	}
	if got, err := x.r.Seen(x.ctx); err != nil || !maps.Equal(got, want) {
		x.failf("it has seen %v, error %v, want %v", got, err, want)
	}
}

func (x *trial) reset(lock string, token fence.Token) {
	if x.err != nil {
		return
	}
	if err := x.r.Reset(x.ctx, holding(lock, token)); err != nil {
		x.failf("reset: %w", err)
	}
}

func (x *trial) prune(before time.Time) {
	if x.err != nil {
		return
	}
	if err := x.r.Prune(x.ctx, before); err != nil {
		x.failf("prune: %w", err)
	}
}
