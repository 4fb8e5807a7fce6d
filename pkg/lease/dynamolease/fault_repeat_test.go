package dynamolease_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// lost are the answers to all attempts of an operation.
var lost = []faultproxy.Fault{faultproxy.After(faultproxy.Drop), faultproxy.After(faultproxy.Drop), faultproxy.After(faultproxy.Drop)}

func TestAfterAFaultAnAcquireRepeatedByItsCallerGetsItsLease(t *testing.T) {
	t.Parallel()
	l := newLine(t, impatient)
	q := l.request()
	l.proxy.Next(write, faultproxy.After(faultproxy.Hang), faultproxy.After(faultproxy.Hang), faultproxy.After(faultproxy.Hang))
	_, err := l.store.Acquire(t.Context(), q)
	l.means("acquire", err, lease.ErrOutcomeUnknown)
	granted := l.state()
	again := must[lease.Lease](t)(l.store.Acquire(t.Context(), q))
	if !again.Repeated || again.Token != granted.Token || !again.ExpiresAt.Equal(granted.ExpiresAt) {
		t.Errorf("got token %d, repeated %v, want token %d", again.Token, again.Repeated, granted.Token)
	}
	l.give(again) // its lease id is the one that was recorded
}

func TestAfterAFaultOnlyTheRequestIDGetsTheLease(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.proxy.Next(write, lost...)
	_, err := l.store.Acquire(t.Context(), l.request())
	l.means("acquire", err, lease.ErrOutcomeUnknown)
	_, err = l.store.Acquire(t.Context(), l.request())
	if !errors.Is(err, lease.ErrHeld) {
		t.Errorf("got error %v, want ErrHeld for another request id of the same holder", err)
	}
}

// Its first attempt is throttled and it has time to wait: what it waits for must
// not be the lease that it holds.
func TestAfterAFaultAWaiterDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	q := l.request()
	granted := must[lease.Lease](t)(l.direct.Acquire(t.Context(), q))
	throttle := faultproxy.Refuse(400, "ThrottlingException")
	l.proxy.Next(write, throttle, throttle, throttle)
	q.Wait = 10 * time.Second
	again := must[lease.Lease](t)(l.store.Acquire(t.Context(), q))
	if !again.Repeated || again.Token != granted.Token {
		t.Errorf("got token %d, repeated %v, want token %d", again.Token, again.Repeated, granted.Token)
	}
}

// Others take the lock and give it up before each try, and the answer to the
// last one is lost.
func TestAfterAFaultOfTheLastRoundTheLeaseIsFound(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.give(l.take())
	l.store.Now = func() time.Time { return time.Now().Add(-time.Minute) } // the first statement is for faster clocks
	overtaken := func(x *faultproxy.Exchange) {
		l.give(l.take())
		faultproxy.Pass(x)
	}
	l.proxy.Next(write, overtaken, overtaken, overtaken, faultproxy.After(faultproxy.Drop))
	q := l.request()
	q.TTL = time.Hour
	held := must[lease.Lease](t)(l.store.Acquire(t.Context(), q))
	if held.Repeated {
		t.Error("says that it had been done before this call")
	}
	l.heldBy(held)
	l.give(held)

	l.proxy.Next(write, overtaken, overtaken, overtaken, overtaken)
	_, err := l.store.Acquire(t.Context(), l.request())
	l.means("acquire", err, lease.ErrUnavailable)
}

func TestAfterAFaultARenewalIsRepeated(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	held := l.take()
	l.proxy.Next(write, lost...)
	_, err := l.store.Renew(t.Context(), renewalOf(held, time.Hour))
	l.means("renew", err, lease.ErrOutcomeUnknown)
	l.heldBy(must[lease.Lease](t)(l.store.Renew(t.Context(), renewalOf(held, time.Hour))))
}

func TestARenewalThatAFaultHadRepeatedTellsTheExpiryThatIsKept(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	held, now := l.take(), time.Now()
	const took = 300 * time.Millisecond
	var passed atomic.Int64
	l.store.Now = func() time.Time { return now.Add(time.Duration(passed.Load())) }
	l.proxy.Next(write, func(x *faultproxy.Exchange) {
		faultproxy.After(faultproxy.Drop)(x)
		passed.Store(int64(took)) // what is sent again has the same expiry in it
	})
	renewed := must[lease.Lease](t)(l.store.Renew(t.Context(), renewalOf(held, time.Hour)))
	l.heldBy(renewed)
	if want := time.Hour - took; renewed.Remaining != want {
		t.Errorf("told %v left, want %v", renewed.Remaining, want)
	}
}

func TestAfterAFaultAReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	held := l.take()
	l.proxy.Next(write, lost...)
	_, err := l.store.Release(t.Context(), releaseOf(held))
	l.means("release", err, lease.ErrOutcomeUnknown)
	if s := must[lease.State](t)(l.store.Release(t.Context(), releaseOf(held))); s.Held || s.Token != held.Token {
		t.Errorf("got %s, want it free", show(s))
	}
	next := l.take()
	if s := must[lease.State](t)(l.store.Release(t.Context(), releaseOf(held))); s.Token != next.Token {
		t.Errorf("got %s, want the next lease, of token %d", show(s), next.Token)
	}
	l.heldBy(next)
}

// Once two others had the lock, the item no longer tells how a lease ended.
func TestAfterAFaultALostReleaseIsTold(t *testing.T) {
	for _, c := range []struct {
		name             string
		others           int
		means, repeating error
	}{
		{"as done when one other had the lock", 1, nil, nil},
		{"as unknown when two others had it: it may have been done", 2, lease.ErrOutcomeUnknown, lease.ErrLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t)
			held := l.take()
			next := held
			l.proxy.Next(write, faultproxy.After(func(*faultproxy.Exchange) {
				for range c.others {
					l.give(next)
					next = l.take()
				}
			}))
			_, err := l.store.Release(t.Context(), releaseOf(held))
			l.means("release", err, c.means)
			_, err = l.store.Release(t.Context(), releaseOf(held))
			l.means("release, repeated by its caller", err, c.repeating)
			l.heldBy(next)
		})
	}
}

func TestAfterAFaultABreakIsRepeated(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	held := l.take()
	l.proxy.Next(write, lost...)
	_, err := l.store.Break(t.Context(), breakOf(held))
	l.means("break", err, lease.ErrOutcomeUnknown)
	b := must[lease.Broken](t)(l.store.Break(t.Context(), breakOf(held)))
	if !b.AlreadyFree || b.Held || b.Token != held.Token+1 {
		t.Errorf("got %s, already free: %v, want so with token %d", show(b.State), b.AlreadyFree, held.Token+1)
	}
}

// A break whose first attempt had no answer must not take the credit for a
// release.
func TestAfterAFaultABreakOfAReleasedLeaseFindsItFree(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	held := l.take()
	l.proxy.Next(write, func(*faultproxy.Exchange) { l.give(held) })
	b := must[lease.Broken](t)(l.store.Break(t.Context(), breakOf(held)))
	if !b.AlreadyFree || b.Token != held.Token {
		t.Errorf("got %s, already free: %v, want so with token %d", show(b.State), b.AlreadyFree, held.Token)
	}
}

// The lock is taken after the break, or what looked like one, whose answer was
// lost. That nothing was changed would be a lie in the log.
func TestAfterAFaultABreakIsToldForWhatItMayHaveDone(t *testing.T) {
	for name, c := range map[string]struct {
		broken bool // by the attempt without an answer, or else released
		after  func(line)
		means  error
		free   bool
	}{
		"carried out, and granted since":                {true, func(l line) { l.take() }, lease.ErrOutcomeUnknown, false},
		"carried out, granted and released since":       {true, func(l line) { l.give(l.take()) }, lease.ErrOutcomeUnknown, false},
		"carried out, and granted twice since":          {true, func(l line) { l.give(l.take()); l.take() }, lease.ErrOutcomeUnknown, false},
		"not carried out: released and granted":         {false, func(l line) { l.take() }, lease.ErrTokenChanged, false},
		"not carried out: granted and released, as one": {false, func(l line) { l.give(l.take()) }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t)
			held := l.take()
			l.proxy.Next(write, func(x *faultproxy.Exchange) {
				if c.broken {
					x.Forward()
				} else {
					l.give(held)
				}
				c.after(l)
			})
			b, err := l.store.Break(t.Context(), breakOf(held))
			l.means("break", err, c.means)
			if b.AlreadyFree != c.free {
				t.Errorf("got %s, already free: %v, want %v", show(b.State), b.AlreadyFree, c.free)
			}
		})
	}
}

func TestAfterAFaultAReleaseIsToldForWhatItFound(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	held := l.take()
	l.proxy.Next(write, faultproxy.After(faultproxy.Drop))
	s := must[lease.State](t)(l.store.Release(t.Context(), releaseOf(held)))
	if s.Ended != lease.ReleasedBefore || s.Holder != "worker-1" {
		t.Errorf("an attempt without an answer has released it: got %#v", s)
	}
	next := l.take()
	if s := must[lease.State](t)(l.store.Release(t.Context(), releaseOf(next))); s.Ended != lease.Released {
		t.Errorf("got %#v, want it released", s)
	}
}
