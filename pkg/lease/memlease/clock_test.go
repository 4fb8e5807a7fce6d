package memlease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

func TestMemoryRefusesACallThatItsClockDoesNotAgreeWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		n := lease.Name{Namespace: "a", Lock: "b"}
		q := lease.AcquireRequest{Name: n, TTL: time.Minute, RequestID: lease.NewID()}
		l, err := m.Acquire(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		frozen := lease.WithCall(t.Context(), &lease.Call{Received: time.Now()})
		time.Sleep(30*time.Second + time.Millisecond)
		future := lease.WithCall(t.Context(), &lease.Call{Received: time.Now().Add(time.Second + time.Millisecond)})
		for name, ctx := range map[string]context.Context{"frozen for too long": frozen, "behind the gateway": future} {
			_, renew := m.Renew(ctx, lease.RenewRequest{Name: n, LeaseID: l.ID, Token: l.Token, TTL: time.Hour})
			_, breaks := m.Break(ctx, lease.BreakRequest{Name: n, Token: l.Token, Reason: "test"})
			_, again := m.Acquire(ctx, q)
			other := q
			other.Name.Lock, other.Wait = "other", 20*time.Second
			_, acquire := m.Acquire(ctx, other)
			for call, err := range map[string]error{"renew": renew, "break": breaks, "a repeated acquire": again, "acquire": acquire} {
				if !errors.Is(err, lease.ErrClockSkew) {
					t.Errorf("%s, %s: got error %v, want ErrClockSkew", name, call, err)
				}
			}
			if s, err := m.Get(ctx, n); err != nil || !s.Held || !s.ExpiresAt.Equal(l.ExpiresAt) {
				t.Errorf("%s: got %v, error %v, want it held as before", name, s, err)
			}
		}
		if s, err := m.Release(frozen, lease.ReleaseRequest{Name: n, LeaseID: l.ID, Token: l.Token}); err != nil || s.Held {
			t.Errorf("release: got %v, error %v: giving up is safe at any time", s, err)
		}
	})
}

func TestMemoryGrantsNothingInTheQuarantineOfARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))) // bubbles begin before there was a Pawl to restore
		m := &memlease.Store{Rules: protocol.Rules{RestoredAt: time.Now()}}
		m.Rules.QuarantineEnd = m.Rules.QuarantineAfter(m.Rules.RestoredAt)
		q := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute, Wait: 20 * time.Second}
		started := time.Now()
		_, err := m.Acquire(t.Context(), q)
		var retry *lease.RetryError
		if !errors.Is(err, lease.ErrQuarantine) || !errors.As(err, &retry) || time.Since(started) != 0 {
			t.Fatalf("got error %v after %v, want ErrQuarantine at once", err, time.Since(started))
		}
		time.Sleep(retry.After)
		l, err := m.Acquire(t.Context(), q)
		if err != nil || protocol.Instant(l.Token) <= m.Rules.Floor() || time.Since(started) != time.Hour+time.Minute+time.Second {
			t.Errorf("got %v, error %v after %v, want a token above %d", l, err, time.Since(started), m.Rules.Floor())
		}
	})
}

func TestMemoryDoesNotGoByRulesThatAreOutOfRange(t *testing.T) {
	n := lease.Name{Namespace: "a", Lock: "b"}
	m := &memlease.Store{Rules: protocol.Rules{RestoredAt: time.Now()}} // without an end of the quarantine
	id := lease.NewID()
	_, acquire := m.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute})
	_, renew := m.Renew(t.Context(), lease.RenewRequest{Name: n, LeaseID: id, Token: 1, TTL: time.Minute})
	_, release := m.Release(t.Context(), lease.ReleaseRequest{Name: n, LeaseID: id, Token: 1})
	_, breaks := m.Break(t.Context(), lease.BreakRequest{Name: n, Token: 1, Reason: "test"})
	_, get := m.Get(t.Context(), n)
	for call, err := range map[string]error{"acquire": acquire, "renew": renew, "release": release, "break": breaks, "get": get} {
		if !errors.Is(err, lease.ErrMisconfigured) || !strings.Contains(err.Error(), "QuarantineEnd") {
			t.Errorf("%s: got error %v, want ErrMisconfigured with the field", call, err)
		}
	}
	m.Rules = protocol.Rules{} // someone has repaired it
	if _, err := m.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute}); err != nil {
		t.Error(err)
	}
}

func TestMemoryRemembersWhoAskedForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		q := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute, RequestID: lease.NewID()}
		as := func(principal string) context.Context {
			return lease.WithCall(t.Context(), &lease.Call{Principal: principal})
		}
		l, err := m.Acquire(as("role-1"), q)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		q.TTL = time.Second // of a repeat nothing but the request id counts
		if again, err := m.Acquire(as("role-1"), q); err != nil || again.ID != l.ID || again.Remaining != 50*time.Second {
			t.Errorf("got %v with %v left, error %v, want the same lease with 50s", again, again.Remaining, err)
		}
		if stolen, err := m.Acquire(as("role-2"), q); !errors.Is(err, lease.ErrRequestConflict) || stolen.ID != "" {
			t.Errorf("got %v, error %v, want ErrRequestConflict", stolen, err)
		}
	})
}

func TestMemoryTellsWhyACallerHasLeft(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	m := new(memlease.Store)
	q := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute}
	if _, err := m.Acquire(ctx, q); !errors.Is(err, over) {
		t.Errorf("got error %v, want %v", err, over)
	}
	if s, err := m.Get(t.Context(), q.Name); err != nil || s.Token != 0 {
		t.Errorf("got %v, error %v, want nothing granted", s, err)
	}
}
