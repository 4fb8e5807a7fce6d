package dynamolease_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// Nobody waits for the minimum hold of a grant that nobody was told of.
func TestAGrantThatIsTakenBackHoldsTheLockForNobody(t *testing.T) {
	eachHost(t, func(h host) {
		h.granted("b")
		h.ahead = 10 * time.Second
		q := clocked
		q.MinHold, q.Holder = time.Minute, "refused"
		if _, err := h.Acquire(h.call(), q); !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("got %v, want ErrClockSkew", err)
		}
		h.ahead = 0
		h.now = h.now.Add(2 * time.Second)
		if _, err := h.Acquire(h.call(), clocked); err != nil {
			t.Errorf("the next acquire: %v", err)
		}
	})
}

// The next holder still learns that the one before did not finish.
func TestAGrantThatIsTakenBackLeavesWordOfALeaseThatRanOut(t *testing.T) {
	eachHost(t, func(h host) {
		q := clocked
		q.TTL, q.Holder = time.Second, "crashed"
		must[lease.Lease](t)(h.Acquire(h.call(), q))
		h.now = h.now.Add(10 * time.Second)
		h.granted("b")
		h.ahead = 10 * time.Second
		if _, err := h.Acquire(h.call(), clocked); !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("got %v, want ErrClockSkew", err)
		}
		h.ahead = 0
		h.now = h.now.Add(2 * time.Second)
		l, err := h.Acquire(h.call(), clocked)
		if err != nil || l.Abandoned == nil || l.Abandoned.Holder != "crashed" {
			t.Errorf("got %+v, %v, want word of the holder that crashed", l.Abandoned, err)
		}
	})
}

// The caller of a grant that was taken back gives the request up: that is no
// release of the lease that ran out before.
func TestAWithdrawalOfAGrantThatIsTakenBackLeavesWordOfALeaseThatRanOut(t *testing.T) {
	eachHost(t, func(h host) {
		q := clocked
		q.TTL, q.Holder = time.Second, "crashed"
		must[lease.Lease](t)(h.Acquire(h.call(), q))
		h.now = h.now.Add(10 * time.Second)
		h.granted("b")
		h.ahead = 10 * time.Second
		q = clocked
		q.RequestID = lease.NewID()
		if _, err := h.Acquire(h.call(), q); !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("got %v, want ErrClockSkew", err)
		}
		h.ahead = 0
		for range 2 {
			if s := must[lease.State](t)(h.Release(h.call(), withdrawalOf(q))); s.Ended != lease.Withdrawn || s.Holder != "" {
				t.Errorf("got %+v, want it withdrawn, and no holder named", s)
			}
		}
		h.now = h.now.Add(2 * time.Second)
		l, err := h.Acquire(h.call(), clocked)
		if err != nil || l.Abandoned == nil || l.Abandoned.Holder != "crashed" {
			t.Errorf("got %+v, %v, want word of the holder that crashed", l.Abandoned, err)
		}
	})
}

func TestARenewalThatWasAppliedOnAWrongClockIsUnknown(t *testing.T) {
	eachHost(t, func(h host) {
		l := h.held()
		h.now = h.now.Add(29 * time.Second)
		h.ahead = -29 * time.Second
		call := h.T.Context()
		if h.gateway {
			call = lease.WithCall(h.T.Context(), &lease.Call{Received: h.now.Add(-29 * time.Second)})
		}
		_, err := h.Renew(call, renewalOf(l, time.Minute))
		s := h.state()
		if !errors.Is(err, lease.ErrOutcomeUnknown) && s.ExpiresAt != l.ExpiresAt {
			t.Error("told as if nothing had been changed")
		}
	})
}

// A host is frozen between reading its clock and sending.
func TestACallThatWasFrozenBeforeItsRequestKeepsNoLease(t *testing.T) {
	eachHost(t, func(h host) {
		h.granted("b")
		h.date = func(int, string) string { return h.now.UTC().Format(http.TimeFormat) }
		call := h.call()
		n := 0
		h.Store.Now = func() time.Time {
			n++
			if n == 4 { // check, verdict, now | sent
				h.now = h.now.Add(45 * time.Second)
			}
			return h.now
		}
		if _, err := h.Acquire(call, clocked); !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("got %v, want ErrClockSkew", err)
		}
		if s := h.state(); s.Held {
			t.Errorf("got %+v: the lease stays behind with nobody", s)
		}
	})
}

func TestAVerdictOfAClockThatWasSetBackIsForgotten(t *testing.T) {
	eachHost(t, func(h host) {
		h.granted("a")
		right := h.now
		h.now = right.Add(time.Hour)
		h.ahead = -time.Hour
		_, _ = h.Get(t.Context(), clocked.Name)
		h.now, h.ahead = right.Add(2*time.Minute), 0
		h.date = func(int, string) string { return "" }
		_, err := h.acquire("c")
		if err != nil {
			t.Error("verdict outlives its minute")
		}
	})
}
