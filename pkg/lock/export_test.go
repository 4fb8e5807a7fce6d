package lock

import (
	"testing"
	"time"
)

// JumpWallClock has the wall clock say what jump adds to it, until the end of
// the test: what a suspended machine finds when it wakes up.
func JumpWallClock(t *testing.T, jump func() time.Duration) {
	real := wall
	wall = func() time.Time { return real().Add(jump()) }
	t.Cleanup(func() { wall = real })
}
