//go:build !linux

package lock

import "time"

var started = time.Now()

// suspended takes all that the wall clock has gained for time in which the
// machine was suspended.
func suspended() time.Duration { return wall().Sub(started.Round(0)) - time.Since(started) }
