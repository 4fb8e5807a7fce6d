package dynamolease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// A scene is a lock of its own at noon, with the lease that its test begins with.
type scene struct {
	*dynamolease.Store
	t    *testing.T
	ctx  context.Context // counts the requests
	now  *protocol.Instant
	q    lease.AcquireRequest
	held lease.Lease
}

func (s *scene) acquire() error { _, err := s.Acquire(s.ctx, s.q); return err }

func (s *scene) other() error {
	q := s.q
	q.RequestID = lease.NewID()
	_, err := s.Acquire(s.ctx, q)
	return err
}

func (s *scene) renew(ttl time.Duration) error {
	_, err := s.Renew(s.ctx, lease.RenewRequest{Name: s.q.Name, LeaseID: s.held.ID, Token: s.held.Token, TTL: ttl})
	return err
}

func (s *scene) release() error {
	_, err := s.Release(s.ctx, lease.ReleaseRequest{Name: s.q.Name, LeaseID: s.held.ID, Token: s.held.Token})
	return err
}

func (s *scene) withdraw() error {
	_, err := s.Release(s.ctx, lease.ReleaseRequest{Name: s.q.Name, RequestID: s.q.RequestID})
	return err
}

func (s *scene) withdrawOther() error {
	_, err := s.Release(s.ctx, lease.ReleaseRequest{Name: s.q.Name, RequestID: lease.NewID()})
	return err
}

func (s *scene) breaks() error {
	_, err := s.Break(s.ctx, lease.BreakRequest{Name: s.q.Name, Token: s.held.Token, Reason: "test"})
	return err
}

// restored has the table come from a backup at noon. It waits for the end of the
// quarantine.
func (s *scene) restored() {
	s.Rules.RestoredAt = noon.Time()
	s.Rules.QuarantineEnd = s.Rules.QuarantineAfter(s.Rules.RestoredAt)
	*s.now = protocol.At(s.Rules.QuarantineEnd)
	warm(s.t, s.Store)
}

// What the operations cost is part of the protocol: users pay for it.
func TestWhatTheOperationsCost(t *testing.T) {
	x := newTable(t)
	free := func(s *scene) { s.must(s.release()) }
	nothing := func(*scene) {}
	for _, c := range []struct {
		name    string
		prepare func(*scene) // what has happened to the lease that is held
		do      func(*scene) error
		err     error
		cost    int // writes; negative when the first is a read
	}{
		{"a first grant", func(s *scene) { s.q.Name.Lock += " too" }, (*scene).other, nil, 1},
		{"a grant after a release", func(s *scene) { free(s); *s.now++ }, (*scene).other, nil, 1},
		{"a takeover", func(s *scene) { *s.now += hour }, (*scene).other, nil, 1},
		{"a renewal", func(s *scene) { *s.now++ }, func(s *scene) error { return s.renew(time.Minute) }, nil, 1},
		{"a renewal that extends nothing", nothing, func(s *scene) error { return s.renew(time.Second) }, nil, 1},
		{"a renewal too late", func(s *scene) { *s.now += hour }, func(s *scene) error { return s.renew(time.Minute) }, lease.ErrExpired, 1},
		{"a release", nothing, (*scene).release, nil, 1},
		{"a release again", free, (*scene).release, nil, 1},
		{"a release by request id", nothing, (*scene).withdraw, nil, -2},
		{"a release by request id of nothing", func(s *scene) { s.q.Name.Lock += " too" }, (*scene).withdraw, nil, -2},
		{"a release by request id beside a lease", func(s *scene) { s.q.RequestID = lease.NewID() }, (*scene).withdraw, nil, -2},
		{"a release by request id again", func(s *scene) { s.must(s.withdraw()) }, (*scene).withdraw, nil, -1},
		{"an acquire after it", func(s *scene) { s.must(s.withdraw()) }, (*scene).acquire, lease.ErrRequestSpent, 1},
		{"an acquire of another after it", func(s *scene) { s.must(s.withdraw()); *s.now++ }, (*scene).other, nil, 1},
		{"a renewal after it", func(s *scene) { s.must(s.withdrawOther()); *s.now++ }, func(s *scene) error { return s.renew(time.Minute) }, nil, 1},
		{"a release after it", func(s *scene) { s.must(s.withdrawOther()) }, (*scene).release, nil, 1},
		{"a break", nothing, (*scene).breaks, nil, 1},
		{"a break of what is free", free, (*scene).breaks, nil, 1},
		{"a refusal", nothing, (*scene).other, lease.ErrHeld, 1},
		{"a repeat", nothing, (*scene).acquire, nil, 1},
		{"a repeat too late", free, (*scene).acquire, lease.ErrRequestSpent, 1},
		{"a request id of someone else", func(s *scene) { s.q.Holder = "worker-2" }, (*scene).acquire, lease.ErrRequestConflict, 1},
		{"a grant in the millisecond of the last", free, (*scene).other, nil, 2},
		{"a grant on a slow clock", func(s *scene) { free(s); *s.now -= minute }, (*scene).other, nil, 2},
		{"the first grant after a restore", func(s *scene) { free(s); s.restored() }, (*scene).other, nil, 2},
		{"the second grant after a restore", func(s *scene) {
			s.restored()
			s.q.RequestID = lease.NewID()
			l, err := s.Acquire(s.t.Context(), s.q)
			s.must(err)
			s.held = l
			free(s)
			*s.now++
		}, (*scene).other, nil, 1},
		{"a grant in the quarantine", func(s *scene) { free(s); s.restored(); *s.now-- }, (*scene).other, lease.ErrQuarantine, 0},
		{"a break in the quarantine", func(s *scene) { s.restored(); *s.now-- }, (*scene).breaks, lease.ErrQuarantine, 0},
		{"a renewal below the floor", (*scene).restored, func(s *scene) error { return s.renew(time.Hour) }, lease.ErrLost, 0},
		{"a release below the floor", (*scene).restored, (*scene).release, nil, 1},
		{"an invalid request", func(s *scene) { s.q.TTL = 0 }, (*scene).acquire, lease.ErrInvalid, 0},
	} {
		for _, gateway := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, gateway: %t", c.name, gateway), func(t *testing.T) {
				now := noon
				s := &scene{Store: x.store(&now, protocol.Rules{}), t: t, ctx: t.Context(), now: &now, q: lease.AcquireRequest{
					Name: lease.Name{Namespace: "a", Lock: lease.NewID()}, TTL: time.Minute, Holder: "worker-1", RequestID: lease.NewID(),
				}}
				held, err := s.Acquire(t.Context(), s.q)
				s.must(err)
				s.held = held
				c.prepare(s)
				call := new(lease.Call)
				if gateway {
					call.Received = now.Time()
				} else {
					warm(t, s.Store)
				}
				x.sent.take()
				s.ctx = lease.WithCall(t.Context(), call)
				if err := c.do(s); !errors.Is(err, c.err) {
					t.Errorf("got error %v, want %v", err, c.err)
				}
				want := slices.Repeat([]string{"UpdateItem"}, max(c.cost, -c.cost))
				if c.cost < 0 {
					want[0] = "GetItem"
				}
				if sent := x.sent.take(); !slices.Equal(sent, want) || call.Requests != len(want) {
					t.Errorf("sent %v, counted %d, want %v", sent, call.Requests, want)
				}
				if counted := call.StoreTime > 0; counted != (c.cost != 0) {
					t.Errorf("the requests took %v", call.StoreTime)
				}
			})
		}
	}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestARefusalInOneRequestTellsWhoHoldsTheLockAndForHowLong(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	q := lease.AcquireRequest{Name: anyLease.Name, TTL: time.Minute, Holder: "worker-1", LockDelay: 3 * time.Second}
	l, err := s.Acquire(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	x.sent.take()
	now += 20 * second
	_, err = s.Acquire(t.Context(), q)
	var held *lease.HeldError
	if !errors.As(err, &held) || *held != (lease.HeldError{Holder: "worker-1", Token: l.Token, Remaining: 44 * time.Second}) {
		t.Errorf("got %+v", err)
	}
	if sent := x.sent.take(); len(sent) != 1 {
		t.Errorf("sent %v", sent)
	}
}

// Failed writes would take the capacity that the holder needs to renew.
func TestWaitersWriteOnceAndThenOnlyRead(t *testing.T) {
	x := newTable(t)
	holder := x.store(nil, protocol.Rules{})
	q := lease.AcquireRequest{Name: anyLease.Name, TTL: time.Hour, Wait: 20 * time.Second}
	l, err := holder.Acquire(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	// meanwhile is called before each request of the waiter.
	wait := func(q lease.AcquireRequest, meanwhile func(request int)) (sent []string, counted int, err error) {
		s, call := x.between(protocol.At(time.Now()), meanwhile), new(lease.Call)
		s.Now = nil
		x.sent.take()
		_, err = s.Acquire(lease.WithCall(t.Context(), call), q)
		return x.sent.take(), call.Requests, err
	}

	short := q
	short.Wait = time.Second
	sent, counted, err := wait(short, func(int) {})
	looks := append([]string{"UpdateItem"}, slices.Repeat([]string{"GetItem"}, max(3, len(sent)-1))...)
	if !errors.Is(err, lease.ErrHeld) || !slices.Equal(sent, looks) || counted != len(sent) {
		t.Errorf("in vain: got error %v, sent %v, counted %d", err, sent, counted)
	}

	sent, counted, err = wait(q, func(request int) {
		if request != 3 { // the first look found it held
			return
		}
		if _, err := holder.Release(t.Context(), lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token}); err != nil {
			t.Error(err)
		}
	})
	want := []string{"UpdateItem", "GetItem", "UpdateItem" /* of the holder */, "GetItem", "UpdateItem"}
	if err != nil || !slices.Equal(sent, want) || counted != 4 {
		t.Errorf("until it is released: got error %v, sent %v, counted %d, want %v", err, sent, counted, want)
	}
}

// A read that is not strongly consistent may show a waiter the lock of before its
// own grant, and a host the clock of yesterday.
func TestEveryReadIsStronglyConsistent(t *testing.T) {
	l := newLine(t)
	held := l.take()
	must[lease.State](t)(l.store.Get(t.Context(), l.Name))
	q := l.request()
	q.Wait = 500 * time.Millisecond
	_, err := l.store.Acquire(t.Context(), q) // looks
	l.means("acquire", err, lease.ErrHeld)
	fresh := &dynamolease.Store{Client: l.store.Client, Table: faultTable}
	must[lease.Lease](t)(fresh.Renew(t.Context(), renewalOf(held, time.Hour))) // asks for the time first
	seen := l.proxy.Seen(read)
	if len(seen) < 3 {
		t.Fatalf("%d reads, want one of each kind", len(seen))
	}
	for _, x := range seen {
		if !bytes.Contains(x.Body, []byte(`"ConsistentRead":true`)) {
			t.Errorf("a read is %s", x.Body)
		}
	}
}
