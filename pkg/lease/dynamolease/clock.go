package dynamolease

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// maxVerdictAge is for how long it is believed what an answer told of the clock.
// Clocks are set, and hosts are suspended.
const maxVerdictAge = time.Minute

// A serverClock is what the last answers told of DynamoDB's clock.
type serverClock struct {
	mu      sync.Mutex
	learnt  time.Time // when a dated answer came last, by the clock that it is about
	skew    error     // whether the clocks agreed then
	undated bool      // the last answer told no time: there is no use in asking
}

// elapsed is the time between two readings of a clock: the monotonic clock stands
// while a host is suspended, and the wall clock goes back when it is set. A clock
// for tests has only the wall.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// date takes the time that an answer tells: whether this clock agrees with it.
// It is in whole seconds, and was read at some time between the request and the
// answer, so that a slow answer makes it less certain and not wrong.
func (s *Store) date(a *attempts, header string, sent, received time.Time) {
	a.answered, a.dated, a.skew = true, false, nil
	at, err := http.ParseTime(header)
	if err != nil {
		return // it came from something in between
	}
	ahead := at.Sub(received)
	a.dated, a.skew = true, s.Rules.Agree(ahead, ahead+time.Second+elapsed(sent, received))
	a.received = received
}

func (c *serverClock) learn(a *attempts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.answered {
		c.undated = !a.dated
	}
	if a.dated {
		c.learnt, c.skew = a.received, a.skew
	}
}

// verdict returns what is known at now, or that nothing is and that it is of use
// to ask.
func (c *serverClock) verdict(now time.Time) (unknown bool, skew error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A clock that has been set back since says nothing of the age.
	if age := elapsed(c.learnt, now); c.learnt.IsZero() || age > maxVerdictAge || age < 0 {
		return !c.undated, nil
	}
	return false, c.skew
}

// open returns the time, if it is certain enough to grant, renew or break by it.
// DynamoDB is asked for it first after it disagreed, so that a process that
// refuses learns when its clock is right again; and where no gateway has told
// the time of the call, also when nothing is known.
func (s *Store) open(ctx context.Context, n lease.Name) (protocol.Instant, error) {
	call := lease.CallFrom(ctx)
	unknown, skew := s.clock.verdict(s.time())
	if skew != nil || unknown && call.Received.IsZero() {
		if _, _, err := s.read(ctx, n); err != nil {
			return 0, err
		}
		if _, skew = s.clock.verdict(s.time()); skew != nil {
			return 0, skew
		}
	}
	now := s.now()
	return now, s.Rules.Open(now, call)
}

func (s *Store) time() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s *Store) now() protocol.Instant { return protocol.At(s.time()) }
