package protocol_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// What users of other lock services ran into.

func TestAThousandGrantsToThreeHoldersHaveGrowingTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		var last lease.Lease
		for i := range 1000 {
			l, err := m.Acquire(t.Context(), lease.AcquireRequest{
				Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Second, Holder: fmt.Sprint("worker-", i%3), Wait: 5 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			if l.Token <= last.Token {
				t.Fatalf("token %d was granted after %d", l.Token, last.Token)
			}
			renewed, err := m.Renew(t.Context(), lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: 2 * time.Second})
			if err != nil || renewed.Token != l.Token {
				t.Fatalf("renew: got token %d, error %v, want %d", renewed.Token, err, l.Token)
			}
			if i%7 != 0 { // the others run out
				if _, err := m.Release(t.Context(), lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token}); err != nil {
					t.Fatal(err)
				}
			}
			last = l
		}
	})
}

// A lock changes hands less than once in a millisecond, so the tokens stay
// behind the clock; but they may be far ahead when a clock was.
func TestAForgottenLockStartsAboveItsLastToken(t *testing.T) {
	for name, start := range map[string]protocol.Instant{"on a right clock": noon, "on a clock that was ten years ahead": noon + 3650*day} {
		t.Run(name, func(t *testing.T) {
			r, err := protocol.Record{}.Acquire(start, theirs, protocol.Rules{})
			for i := range 10_000 {
				if err != nil {
					t.Fatal(err)
				}
				if r, err = r.Release(lease.ReleaseRequest{LeaseID: "lease-2", Token: r.Token}); err != nil {
					t.Fatal(err)
				}
				g := theirs
				g.RequestID = fmt.Sprint("request ", i)
				r, err = r.Acquire(noon+second, g, protocol.Rules{})
			}
			if err != nil {
				t.Fatal(err)
			}
			// The store deletes it as early as it may, and the next host is as
			// far behind as it may be.
			forgotten := protocol.Instant(r.Retire)*second - minute
			again, err := protocol.Record{}.Acquire(forgotten, mine, protocol.Rules{})
			if err != nil || again.Token <= r.Token {
				t.Errorf("token %d, error %v, was granted after %d", again.Token, err, r.Token)
			}
		})
	}
}

func TestRenewingDoesNotReviveALeaseWhoseSuccessorHasReleased(t *testing.T) {
	after, err := their.Release(lease.ReleaseRequest{LeaseID: "lease-2", Token: their.Token})
	if err != nil {
		t.Fatal(err)
	}
	q := lease.RenewRequest{LeaseID: "lease-1", Token: held.Token, TTL: time.Hour}
	for _, now := range []protocol.Instant{noon, held.Expires - ms, held.Free, held.Free + day} {
		if _, err := after.Renew(now, q, protocol.Rules{}); !errors.Is(err, lease.ErrLost) {
			t.Errorf("at %d: got error %v, want ErrLost", now, err)
		}
	}
}

func TestTheSameHolderGetsANewLeaseAfterItsLastRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		q := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Second, Holder: "worker-1", Wait: 5 * time.Second}
		first, err := m.Acquire(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		second, err := m.Acquire(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if second.ID == first.ID || second.Token <= first.Token || second.Repeated {
			t.Errorf("got token %d, repeated %t, after token %d", second.Token, second.Repeated, first.Token)
		}
		if a := second.Abandoned; a == nil || a.Token != first.Token {
			t.Errorf("abandoned is %+v, want token %d", a, first.Token)
		}
		_, err = m.Renew(t.Context(), lease.RenewRequest{Name: q.Name, LeaseID: first.ID, Token: first.Token, TTL: time.Hour})
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("renewing the first: got error %v, want ErrLost", err)
		}
	})
}

func TestNamesThatReadAlikeWithoutTheirSlashAreDifferentLocks(t *testing.T) {
	m := new(memlease.Store)
	for _, n := range []lease.Name{{Namespace: "ab", Lock: "c"}, {Namespace: "a", Lock: "bc"}, {Namespace: "a", Lock: "b/c"}, {Namespace: "a-b", Lock: "c"}} {
		if _, err := m.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute}); err != nil {
			t.Errorf("%v: %v", n, err)
		}
	}
}

func TestHostsWhoseClocksAreOffTakeOverOnlyWhenTheHolderHasStopped(t *testing.T) {
	rules := protocol.Rules{Skew: 4 * time.Second} // the most that two hosts are apart here
	n := lease.Name{Namespace: "a", Lock: "b"}
	grant := func(holder string) protocol.Grant {
		g, err := rules.Grant(lease.AcquireRequest{Name: n, TTL: 10 * time.Second, Holder: holder}, "")
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	clocks := []protocol.Instant{-2 * second, 0, 2 * second}
	for _, first := range clocks {
		for _, other := range clocks {
			r, err := protocol.Record{}.Acquire(noon+first, grant("worker-1"), rules)
			if err != nil {
				t.Fatal(err)
			}
			// The holder's own clock does not matter: it counts from when it asked.
			stops := noon.Add(r.Lease(n, noon+first, 10*time.Second).Remaining)
			at := noon
			for ; ; at += ms {
				next, err := r.Acquire(at+other, grant("worker-2"), rules)
				if err == nil && next.Token > r.Token {
					break
				}
				if at > noon+minute {
					t.Fatalf("nobody took over: %v", err)
				}
			}
			if at < stops {
				t.Errorf("granted at %+d and taken over at %+d: %v before the holder stops", first, other, stops.Sub(at))
			}
			if stored := r.Free - other; at != stored {
				t.Errorf("taken over at %d, want %d, the stored expiry and the skew by that clock", at, stored)
			}
		}
	}
}

func TestTokensOfARestoredStoreAreAboveAllThatItForgot(t *testing.T) {
	backup := held
	forgotten, err := protocol.Record{}, error(nil)
	for r, now := backup, noon; now < noon+hour; now += minute {
		if r, err = r.Break(now, r.Token, protocol.Rules{}); err != nil {
			t.Fatal(err)
		}
		g := theirs
		g.RequestID = fmt.Sprint("request ", now)
		if r, err = r.Acquire(now, g, protocol.Rules{}); err != nil {
			t.Fatal(err)
		}
		forgotten = r
	}
	rules := protocol.Rules{RestoredAt: (noon + hour).Time()}
	rules.QuarantineEnd = rules.QuarantineAfter(rules.RestoredAt)
	for now := noon + hour; ; now += second {
		next, err := backup.Acquire(now, with(mine, func(g *protocol.Grant) { g.RequestID = "request-3" }), rules)
		if errors.Is(err, lease.ErrQuarantine) {
			continue
		}
		if err != nil || next.Token <= forgotten.Token || next.Token <= fence.Token(rules.Floor()) {
			t.Errorf("got token %d, error %v, after %d and the floor %d", next.Token, err, forgotten.Token, rules.Floor())
		}
		break
	}
}
