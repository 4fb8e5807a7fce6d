package lock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// leastPause keeps a service that says "held, but not for long" from being asked
// as fast as it can answer.
const leastPause = 10 * time.Millisecond

// pauseAfter is how long to wait after a number of failures in a row, by what the
// last one says: what the service asks for or somewhat more. What has to be
// repaired is asked for less often.
func pauseAfter(v lease.Verdict, failures int) time.Duration {
	if v.Repair {
		return max(v.After, jitter(min(time.Second<<min(failures-1, 3), 8*time.Second)))
	}
	return max(v.After+rand.N(v.After/4+1), backoff(failures))
}

// backoff is how long to wait after a number of failures in a row: about 50 ms,
// doubled each time, up to 2 s.
func backoff(failures int) time.Duration {
	return jitter(min(50*time.Millisecond<<min(failures-1, 10), 2*time.Second))
}

// jitter is half of d to d, so that many callers spread out.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
