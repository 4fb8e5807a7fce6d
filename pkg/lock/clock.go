package lock

import "time"

// wall reads the wall clock; a test sets it.
var wall = func() time.Time { return time.Now().Round(0) }

// slept is for how long the machine has been suspended; a test sets it.
var slept = suspended

// A moment is a time, by all clocks that tell how long ago it is.
type moment struct {
	time.Time // by the monotonic clock
	wall      time.Time
	slept     time.Duration
}

func now() moment { return moment{time.Now(), wall(), slept()} }

// until is how long it is until t, which was counted from m, by the clock that
// says less: the monotonic clock stands still while the machine is suspended, and
// the wall clock may be set back.
func (m moment) until(t time.Time) time.Duration {
	return min(time.Until(t), m.wall.Add(t.Sub(m.Time)).Sub(wall()))
}

// awake is until as far as the monotonic clock and suspends tell. If that is more,
// the wall clock has stepped forward, or the machine was stopped in a way that it
// cannot know of.
func (m moment) awake(t time.Time) time.Duration {
	return time.Until(t) - max(slept()-m.slept, 0)
}
