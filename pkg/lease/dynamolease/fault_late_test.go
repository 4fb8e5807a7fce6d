package dynamolease_test

import (
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// refused checks that requests arrived late and that their conditions failed.
func (l line) refused(late *faultproxy.Late) {
	l.Helper()
	answers := late.Arrive()
	if len(answers) == 0 {
		l.Error("no request was late")
	}
	for _, a := range answers {
		if a.Name() != "ConditionalCheckFailedException" {
			l.Errorf("a late request was answered with %d %s", a.Status, a.Body)
		}
	}
}

// What is late is a duplicate, or the attempt that the client gave up waiting
// for before it tried again.
func TestFaultsThatMakeAnAcquireLateChangeNothing(t *testing.T) {
	for name, fault := range map[string]func(*faultproxy.Late) faultproxy.Fault{
		"a duplicate":      func(l *faultproxy.Late) faultproxy.Fault { return l.Copy },
		"a delayed packet": func(l *faultproxy.Late) faultproxy.Fault { return l.Delay },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, late := newLine(t, impatient), new(faultproxy.Late)
			l.proxy.Next(write, fault(late))
			held := must[lease.Lease](t)(l.store.Acquire(t.Context(), l.request()))
			must[lease.Lease](t)(l.store.Renew(t.Context(), renewalOf(held, time.Hour)))
			must[lease.State](t)(l.store.Release(t.Context(), releaseOf(held)))
			l.refused(late)
			if s := l.state(); s.Held || s.Token != held.Token {
				t.Errorf("the lock is %s, want it free with token %d", show(s), held.Token)
			}
		})
	}
}

func TestFaultsThatMakeAnAcquireLateLeaveTheHolderAlone(t *testing.T) {
	t.Parallel()
	l, late := newLine(t), new(faultproxy.Late)
	l.proxy.Next(write, late.Copy)
	first := must[lease.Lease](t)(l.store.Acquire(t.Context(), l.request()))
	must[lease.State](t)(l.store.Release(t.Context(), releaseOf(first)))
	next := l.take()
	l.refused(late)
	l.heldBy(next)
	l.give(next)
	l.proxy.Next(write, late.Copy) // of a repeat, which changed nothing when it was not late
	q := l.request()
	held := must[lease.Lease](t)(l.direct.Acquire(t.Context(), q))
	must[lease.Lease](t)(l.store.Acquire(t.Context(), q))
	l.give(held)
	l.refused(late)
}

// Another grant replaces the request id that refuses the first one's duplicate.
// What refuses it then is the clock, even when it has not moved.
func TestFaultsThatMakeAnAcquireLateChangeNothingInTheSameMillisecond(t *testing.T) {
	t.Parallel()
	l, late := newLine(t), new(faultproxy.Late)
	now := time.Now()
	l.store.Now = func() time.Time { return now }
	l.direct.Now = l.store.Now
	l.proxy.Next(write, late.Copy)
	l.give(must[lease.Lease](t)(l.store.Acquire(t.Context(), l.request())))
	l.give(l.take())
	l.refused(late)
	if s := l.state(); s.Held {
		t.Errorf("the lock is %s, want it free", show(s))
	}
}

// The second statement of an acquire compares with the token that was seen
// instead of the clock.
func TestFaultsThatMakeASlowAcquireLateChangeNothing(t *testing.T) {
	t.Parallel()
	l, late := newLine(t), new(faultproxy.Late)
	l.give(l.take())
	l.store.Now = func() time.Time { return time.Now().Add(-time.Minute) } // behind the last grant
	l.proxy.Next(write, faultproxy.Pass, late.Copy)
	held := must[lease.Lease](t)(l.store.Acquire(t.Context(), l.request()))
	l.give(held)
	l.refused(late)
	if s := l.state(); s.Held || s.Token != held.Token {
		t.Errorf("the lock is %s, want it free with token %d", show(s), held.Token)
	}
}

func TestFaultsThatMakeARenewalLateDoNotShortenTheLease(t *testing.T) {
	t.Parallel()
	l, late := newLine(t), new(faultproxy.Late)
	held := l.take()
	l.proxy.Next(write, late.Copy)
	must[lease.Lease](t)(l.store.Renew(t.Context(), renewalOf(held, 2*time.Minute)))
	longer := must[lease.Lease](t)(l.store.Renew(t.Context(), renewalOf(held, time.Hour)))
	l.refused(late)
	l.heldBy(longer)
}

func TestFaultsThatMakeARenewalLateDoNotReviveTheLease(t *testing.T) {
	t.Parallel()
	l, late := newLine(t, impatient), new(faultproxy.Late)
	held := l.take()
	l.proxy.Next(write, late.Delay, late.Copy)
	must[lease.Lease](t)(l.store.Renew(t.Context(), renewalOf(held, time.Hour)))
	l.give(held)
	l.refused(late)
	if s := l.state(); s.Held {
		t.Errorf("the lock is %s, want it free", show(s))
	}
}

func TestFaultsThatMakeAReleaseLateDoNotEndTheNextLease(t *testing.T) {
	t.Parallel()
	l, late := newLine(t), new(faultproxy.Late)
	held := l.take()
	l.proxy.Next(write, late.Copy)
	must[lease.State](t)(l.store.Release(t.Context(), releaseOf(held)))
	next := l.take()
	l.refused(late)
	l.heldBy(next)
}

func TestFaultsThatMakeABreakLateDoNotEndTheNextLease(t *testing.T) {
	t.Parallel()
	l, late := newLine(t), new(faultproxy.Late)
	held := l.take()
	l.proxy.Next(write, late.Copy)
	must[lease.Broken](t)(l.store.Break(t.Context(), breakOf(held)))
	next := l.take()
	l.refused(late)
	l.heldBy(next)
}

// What never arrived in time may take a free lock when nobody waits for it any
// more. That is safe, and it is over when its TTL is.
func TestFaultsThatMakeAnUnappliedAcquireLateGrantItOnceAtMost(t *testing.T) {
	t.Parallel()
	l, late := newLine(t, impatient), new(faultproxy.Late)
	q := l.request()
	l.proxy.Next(write, late.Delay, late.Delay, late.Delay)
	_, err := l.store.Acquire(t.Context(), q)
	l.means("acquire", err, lease.ErrOutcomeUnknown)
	if s := l.state(); s.Held || s.Token != 0 {
		t.Errorf("the lock is %s before anything arrived", show(s))
	}
	late.Arrive()
	if n := l.proxy.Done(write); n != 1 {
		t.Errorf("three attempts were granted %d times", n)
	}
	l.heldBy(must[lease.Lease](t)(l.store.Acquire(t.Context(), q)))
}
