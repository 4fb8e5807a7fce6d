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

var (
	withdrawn = protocol.Withdrawal{RequestID: "request-1", Principal: "role-1"} // the request of held
	other     = protocol.Withdrawal{RequestID: "request-2", Principal: "role-1"}
)

// markedUntil is when a marker that was set at noon has done its work.
const markedUntil = noon + minute + second

// marked returns r with markers.
func marked(r protocol.Record, all ...protocol.Marker) protocol.Record {
	r.Markers, _ = protocol.MarkersOf(all)
	return r
}

// takenBack is the grant held, if it took over a lease that ran out and was taken back.
var takenBack = change(held, func(r *protocol.Record) {
	r.PrevExpires, r.PrevHolder = noon-hour, "crashed"
	*r = r.TakenBack()
})

// crowd returns n markers of other requests, the first until noon + 1 s, and so on.
func crowd(n int) (all []protocol.Marker) {
	for i := range n {
		all = append(all, protocol.Marker{Mark: fmt.Sprint("crowd-", i), Until: noon + protocol.Instant(i+1)*second})
	}
	return all
}

func TestWithdraw(t *testing.T) {
	var none protocol.Record
	withdraw := func(now protocol.Instant, w protocol.Withdrawal) func(protocol.Record) (protocol.Record, error) {
		return func(r protocol.Record) (protocol.Record, error) { return r.Withdraw(now, w, protocol.Rules{}) }
	}
	mine, its := protocol.Marker{Mark: withdrawn.Mark(), Until: markedUntil}, protocol.Marker{Mark: other.Mark(), Until: markedUntil}
	retire := func(r protocol.Record, at protocol.Instant) protocol.Record { r.Retire = int64(at) / 1000; return r }
	stranger := protocol.Withdrawal{RequestID: "request-1", Principal: "role-2"}
	check(t, []transition{
		{"its lease is ended, and it gets no other", held, withdraw(noon, withdrawn), marked(released, mine), nil},
		{"the minimum hold stays", protected, withdraw(noon, withdrawn),
			marked(change(released, func(r *protocol.Record) { r.Hold, r.Free = protected.Hold, protected.Hold }), mine), nil},
		{"a lease that ran out is ended too", marked(held, crowd(1)...), withdraw(held.Expires+ms, withdrawn),
			marked(released, protocol.Marker{Mark: mine.Mark, Until: held.Expires + ms + minute + second}), nil},
		{"after its release it gets no other", released, withdraw(noon, withdrawn), marked(released, mine), nil},
		{"a lease that was broken stays so", broken, withdraw(noon, withdrawn), marked(broken, mine), nil},
		{"of another principal it is a conflict", held, withdraw(noon, stranger), none, lease.ErrRequestConflict},
		{"of another principal it is a conflict after its end", marked(released, mine), withdraw(noon, stranger), none, lease.ErrRequestConflict},
		{"the lease of another request stays", held, withdraw(noon, other), marked(held, its), nil},
		{"a lock of which nothing is recorded gets a marker, and is forgotten", none, withdraw(noon, other),
			retire(marked(none, its), markedUntil+7*day), nil},
		{"a record is not forgotten before the marker", retire(released, markedUntil-second), withdraw(noon, other),
			retire(marked(released, its), markedUntil+7*day), nil},
		{"one that is to be forgotten later stays so", retire(released, markedUntil), withdraw(noon, other), retire(marked(released, its), markedUntil), nil},
		{"again it changes nothing", marked(released, mine), withdraw(noon+15*second, withdrawn), marked(released, mine), nil},
		{"again it changes nothing for a request that was not granted", marked(held, its), withdraw(noon+15*second, other), marked(held, its), nil},
		{"again, later, it lasts longer", marked(held, its), withdraw(noon+15*second+ms, other),
			marked(held, protocol.Marker{Mark: its.Mark, Until: markedUntil + 15*second + ms}), nil},
		{"again, later, it lasts longer in a full record", marked(held, append(crowd(9), its)...), withdraw(noon+999*ms, other), marked(held, append(crowd(9), its)...), nil},
		{"a grant that was taken back is none", takenBack, withdraw(noon, withdrawn), marked(takenBack, mine), nil},
		{"a grant that was taken back is no one else's", takenBack, withdraw(noon, stranger), none, lease.ErrRequestConflict},
		{"it joins others", marked(held, crowd(9)...), withdraw(noon, other), marked(held, append(crowd(9), its)...), nil},
		{"old markers go", marked(held, crowd(10)...), withdraw(noon+3*second, other),
			marked(held, append(crowd(10)[3:], protocol.Marker{Mark: its.Mark, Until: markedUntil + 3*second})...), nil},
		{"without room it is unknown whether it will be granted", marked(held, crowd(10)...), withdraw(noon+second-ms, other), none, lease.ErrTooManyWithdrawn},
		{"without room its lease is ended all the same", marked(held, crowd(10)...), withdraw(noon, withdrawn), marked(released, crowd(10)...), nil},
		{"without room its second lease would not be refused", marked(released, crowd(10)...), withdraw(noon, withdrawn), none, lease.ErrTooManyWithdrawn},
		{"without room again it changes nothing", marked(held, append(crowd(9), its)...), withdraw(noon, other), marked(held, append(crowd(9), its)...), nil},
	})
	_, err := marked(held, crowd(10)...).Withdraw(noon+200*ms, other, protocol.Rules{})
	var retry *lease.RetryError
	if !errors.As(err, &retry) || retry.After != 800*time.Millisecond {
		t.Errorf("without room: got %#v, want the time until there is some", err)
	}
}

func TestARequestThatWasWithdrawnIsNotGranted(t *testing.T) {
	g := protocol.Grant{LeaseID: "lease-2", RequestID: "request-2", Principal: "role-1", TTL: time.Minute, Delay: time.Second}
	its := protocol.Marker{Mark: other.Mark(), Until: markedUntil}
	for _, r := range []protocol.Record{marked(protocol.Record{}, its), marked(released, its), marked(held, its)} {
		// The marker counts until another takes its place, however late it is.
		for _, now := range []protocol.Instant{noon, markedUntil, markedUntil + 9*day} {
			if got, err := r.Acquire(now, g, protocol.Rules{}); !errors.Is(err, lease.ErrRequestSpent) || got != r {
				t.Errorf("at %d: got %+v, error %v", now, got, err)
			}
			if err := r.Awaited(now, g); !errors.Is(err, lease.ErrRequestSpent) {
				t.Errorf("a waiter at %d: got error %v", now, err)
			}
		}
		for _, changed := range []func(*protocol.Grant){
			func(g *protocol.Grant) { g.RequestID = "request-3" },
			func(g *protocol.Grant) { g.Principal = "role-2" }, // nobody withdraws what somebody else asks for
		} {
			g := g
			changed(&g)
			now := held.Free
			next, err := r.Acquire(now, g, protocol.Rules{})
			if err != nil || next.LeaseID != "lease-2" || next.Markers != r.Markers || r.Awaited(now, g) != nil {
				t.Errorf("%+v: got %+v, error %v", g, next, err)
			}
		}
	}
}

func TestAWithdrawalTellsWhatItFound(t *testing.T) {
	late := change(released, func(r *protocol.Record) { r.Principal = "role-1" })
	for _, c := range []struct {
		name   string
		record protocol.Record
		now    protocol.Instant
		w      protocol.Withdrawal
		want   lease.State
	}{
		{"a lease", held, noon, withdrawn, lease.State{Token: held.Token, Holder: "worker-1", Ended: lease.Released}},
		{"a lease that ran out", held, held.Free, withdrawn, lease.State{Token: held.Token, Holder: "worker-1", Ended: lease.Released}},
		{"a lease that was released", late, noon, withdrawn, lease.State{Token: held.Token, Holder: "worker-1", Ended: lease.ReleasedBefore}},
		{"a grant that was taken back", takenBack, noon, withdrawn, lease.State{Token: takenBack.Token, Ended: lease.Withdrawn}},
		{"nothing", protocol.Record{}, noon, other, lease.State{Ended: lease.Withdrawn}},
		{"the lease of another", held, noon, other, lease.State{Held: true, Token: held.Token, AcquiredAt: noon.Time(), ExpiresAt: held.Expires.Time(),
			Remaining: time.Minute, AvailableAt: held.Free.Time(), Ended: lease.Withdrawn}},
		{"a lease of another that ran out", held, held.Free, other, lease.State{Token: held.Token, Ended: lease.Withdrawn}},
	} {
		if got := c.record.Withdrawn(lease.Name{}, c.now, c.w); got != c.want {
			t.Errorf("%s: got  %#v\nwant %#v", c.name, got, c.want)
		}
	}
}

func TestTheMarksOfRequestsAreDifferent(t *testing.T) {
	seen := make(map[string]protocol.Withdrawal)
	for _, w := range []protocol.Withdrawal{
		withdrawn, other, {RequestID: "request-1"}, {Principal: "role-1"}, {}, {RequestID: "request-1r", Principal: "ole-1"},
	} {
		m := w.Mark()
		if o, found := seen[m]; found || len(m) != 12 {
			t.Errorf("%+v and %+v have the mark %q", w, o, m)
		}
		seen[m] = w
		if g := (protocol.Grant{RequestID: w.RequestID, Principal: w.Principal}); g.Mark() != m {
			t.Errorf("a grant of %+v has the mark %q, want %q", w, g.Mark(), m)
		}
	}
	if _, ok := protocol.MarkersOf(crowd(11)); ok {
		t.Error("eleven markers are accepted")
	}
}

func TestMemoryWithdrawsForThePrincipalOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		as := func(principal string) *lease.Call { return &lease.Call{Principal: principal, Received: time.Now()} }
		q := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute, RequestID: lease.NewID()}
		release := func(principal string, want lease.Ending, fails error) {
			t.Helper()
			s, err := m.Release(lease.WithCall(t.Context(), as(principal)), lease.ReleaseRequest{Name: q.Name, RequestID: q.RequestID})
			if s.Ended != want || !errors.Is(err, fails) {
				t.Errorf("%s: got ending %d, error %v, want %d, %v", principal, s.Ended, err, want, fails)
			}
		}
		release("role-2", lease.Withdrawn, nil) // of a request of its own, which there is not
		l, err := m.Acquire(lease.WithCall(t.Context(), as("role-1")), q)
		if err != nil {
			t.Fatal(err)
		}
		release("role-2", 0, lease.ErrRequestConflict)
		release("role-1", lease.Released, nil)
		release("role-1", lease.ReleasedBefore, nil)
		if s, err := m.Get(t.Context(), q.Name); err != nil || s.Held || s.Token != l.Token {
			t.Errorf("got %+v, %v", s, err)
		}
		// A process that was frozen would set a marker that has ended already.
		frozen := as("role-1")
		time.Sleep(31 * time.Second)
		q.RequestID = lease.NewID()
		if _, err := m.Release(lease.WithCall(t.Context(), frozen), lease.ReleaseRequest{Name: q.Name, RequestID: q.RequestID}); !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("frozen: got error %v", err)
		}
	})
}

func TestTheEleventhWithdrawalWithinAMinuteHasToWaitAndEndsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		n := lease.Name{Namespace: "a", Lock: "b"}
		release := func(id string) error {
			_, err := m.Release(t.Context(), lease.ReleaseRequest{Name: n, RequestID: id})
			return err
		}
		for range 10 {
			if err := release(lease.NewID()); err != nil {
				t.Fatal(err)
			}
		}
		q := lease.AcquireRequest{Name: n, TTL: time.Minute, RequestID: lease.NewID()}
		if _, err := m.Acquire(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		for _, w := range []struct {
			id   string
			want error
		}{{lease.NewID(), lease.ErrTooManyWithdrawn}, {q.RequestID, lease.ErrOutcomeUnknown}, {q.RequestID, lease.ErrTooManyWithdrawn}} {
			err := release(w.id)
			var retry *lease.RetryError
			if !errors.Is(err, w.want) || !errors.As(err, &retry) || retry.After != time.Minute+time.Second {
				t.Fatalf("got %v", err)
			}
		}
		if s, err := m.Get(t.Context(), n); err != nil || s.Held || s.Token == fence.Token(0) {
			t.Errorf("the lease was not ended: %+v, %v", s, err)
		}
		time.Sleep(time.Minute + time.Second)
		for _, id := range []string{lease.NewID(), q.RequestID} {
			if err := release(id); err != nil {
				t.Errorf("after the time that was told: %v", err)
			}
		}
	})
}
