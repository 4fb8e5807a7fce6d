package lock

import (
	"testing"
	"time"
)

// JumpWallClock has the wall clock say what jump adds to it, until the end of
// the test, because the machine was suspended.
func JumpWallClock(t *testing.T, jump func() time.Duration) {
	StepWallClock(t, jump)
	real := slept
	slept = func() time.Duration { return real() + jump() }
	t.Cleanup(func() { slept = real })
}

// StepWallClock has the wall clock say what step adds to it, until the end of the
// test, because it was set.
func StepWallClock(t *testing.T, jump func() time.Duration) {
	real := wall
	wall = func() time.Time { return real().Add(jump()) }
	t.Cleanup(func() { wall = real })
}
