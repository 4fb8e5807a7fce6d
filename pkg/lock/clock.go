package lock

import "time"

// until is how long it is until t, by the clock that says less: the monotonic
// clock stands still while the machine is suspended, and the wall clock may be
// set back.
func until(t time.Time) time.Duration {
	return min(time.Until(t), t.Round(0).Sub(wall()))
}

// wall reads the wall clock; a test sets it.
var wall = func() time.Time { return time.Now().Round(0) }
