package protocol_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// halfSkew is how far the clock of a host may be from the true time.
const halfSkew = 500 * ms

func TestNoInterleavingOfCallersBreaksThePromises(t *testing.T) {
	for range 100 * rigor.Rounds(t) {
		rapid.Check(t, interleave)
	}
}

func FuzzInterleavings(f *testing.F) { f.Fuzz(rapid.MakeFuzz(interleave)) }

// interleave does anything to a few locks, in any order, by hosts whose clocks
// are off, with any earlier request coming again, and with the store losing its
// last changes. What must hold is checked at every step.
func interleave(t *rapid.T) {
	w := &world{now: noon, locks: make([]lock, rapid.IntRange(1, 3).Draw(t, "locks"))}
	t.Repeat(map[string]func(*rapid.T){
		"acquire":  w.acquire,
		"acquire2": w.acquire, // most of the time: what comes after a grant is what matters
		"renew":    func(t *rapid.T) { w.choose(t).sendForGrant(t, w, renewal) },
		"release":  func(t *rapid.T) { w.choose(t).sendForGrant(t, w, giveUp) },
		"release2": func(t *rapid.T) { w.choose(t).sendForGrant(t, w, giveUp) },
		"break":    func(t *rapid.T) { w.choose(t).sendForGrant(t, w, breakage) },
		"withdraw": w.withdraw,
		"crowd":    w.crowd,
		"again":    w.again,
		"wait":     w.wait,
		"wait2":    w.wait,
		"retire":   w.retire,
		"backup":   w.backup,
		"settings": w.settings,
		"restore":  w.restore,
	})
}

// A world is the truth: the true time and everything that was ever granted.
type world struct {
	now   protocol.Instant
	rules protocol.Rules
	locks []lock
	ids   int
}

type lock struct {
	record, saved protocol.Record
	highest       fence.Token
	grants        []*term
	sent          []func(*rapid.T)
	withdrawn     map[string]protocol.Instant // by request: until when the answer said that it is granted nothing
}

// A term is the life of one grant.
type term struct {
	token   fence.Token
	request string
	q       lease.RenewRequest
	expires protocol.Instant // the latest that was recorded
	trusted protocol.Instant // the true time until when its holder relies on it
	ended   bool             // it was released or broken
	free    bool             // it was released
}

func (w *world) choose(t *rapid.T) *lock {
	return &w.locks[rapid.IntRange(0, len(w.locks)-1).Draw(t, "lock")]
}

// clock is what some host reads.
func (w *world) clock(t *rapid.T) protocol.Instant {
	return w.now + rapid.SampledFrom([]protocol.Instant{0, halfSkew, -halfSkew, ms, -ms, 100 * ms}).Draw(t, "skew")
}

func (w *world) floor() protocol.Instant { return w.rules.Floor() }

func (w *world) acquire(t *rapid.T) {
	l := w.choose(t)
	w.ids++
	g := protocol.Grant{
		// Few lease ids, so that they come again: only with the token do they
		// name a lease.
		LeaseID:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "lease id"),
		RequestID: fmt.Sprint("request ", w.ids),
		Holder:    "worker",
		TTL:       time.Duration(rapid.SampledFrom([]int{1, 2, 60, 3600}).Draw(t, "ttl")) * time.Second,
		Delay:     time.Second + time.Duration(rapid.SampledFrom([]int{0, 0, 3, 60}).Draw(t, "lock delay"))*time.Second,
	}
	if rapid.Bool().Draw(t, "minimum hold") {
		g.MinHold = g.TTL / 2
	}
	l.send(t, func(t *rapid.T) { w.grant(t, l, g) })
}

// send makes a request and keeps it, to be repeated.
func (l *lock) send(t *rapid.T, request func(*rapid.T)) {
	l.sent = append(l.sent, request)
	request(t)
}

// sendForGrant makes a request about a grant, most often the last.
func (l *lock) sendForGrant(t *rapid.T, w *world, request func(*world, *lock, *term) func(*rapid.T)) {
	if len(l.grants) == 0 {
		t.Skip("nothing was granted")
	}
	i := max(0, len(l.grants)-1-rapid.IntRange(0, 2).Draw(t, "age"))
	l.send(t, request(w, l, l.grants[i]))
}

func (w *world) again(t *rapid.T) {
	l := w.choose(t)
	if len(l.sent) == 0 {
		t.Skip("nothing was sent")
	}
	i := max(0, len(l.sent)-1-rapid.IntRange(0, 10).Draw(t, "age"))
	l.sent[i](t)
}

func (w *world) wait(t *rapid.T) {
	w.now += protocol.Instant(rapid.SampledFrom([]protocol.Instant{ms, 10 * ms, halfSkew, halfSkew - ms, second, 2 * second, minute, hour, 3 * hour, 3 * day, 9 * day}).Draw(t, "time"))
}

// retire is the store deleting what may be forgotten.
func (w *world) retire(t *rapid.T) {
	if l := w.choose(t); l.record.Retire < w.clock(t).Seconds() {
		l.record = protocol.Record{}
	}
}

func (w *world) backup(*rapid.T) {
	for i := range w.locks {
		w.locks[i].saved = w.locks[i].record
	}
}

// restore loses everything since the last backup, or everything. The operator's
// clock may be off too.
func (w *world) restore(t *rapid.T) {
	for i := range w.locks {
		w.locks[i].record = w.locks[i].saved
	}
	if at := w.clock(t).Time(); at.After(w.rules.RestoredAt) {
		w.rules.RestoredAt = at
	} else {
		w.rules.RestoredAt = w.rules.RestoredAt.Add(time.Millisecond)
	}
	w.rules.QuarantineEnd = w.rules.QuarantineAfter(w.rules.RestoredAt)
}

// settings is a deployment that allows more, or as much as before, and changes
// nothing else.
func (w *world) settings(t *rapid.T) {
	w.rules.MaxTTL = rapid.SampledFrom([]time.Duration{0, 6 * time.Hour, 24 * time.Hour}).Draw(t, "maximum TTL")
}

// withdraw releases by the id of a request that was made, or is to be made next.
func (w *world) withdraw(t *rapid.T) {
	l := w.choose(t)
	q := protocol.Withdrawal{RequestID: fmt.Sprint("request ", max(1, w.ids+1-rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(t, "request")))}
	l.send(t, func(t *rapid.T) { w.giveUp(t, l, q) })
}

// crowd leaves no room for markers, or little.
func (w *world) crowd(t *rapid.T) {
	l := w.choose(t)
	for i := range rapid.SampledFrom([]int{9, 10}).Draw(t, "markers") {
		w.giveUp(t, l, protocol.Withdrawal{RequestID: fmt.Sprint("crowd ", i)})
	}
}

func (w *world) giveUp(t *rapid.T, l *lock, q protocol.Withdrawal) {
	for {
		before := l.record
		after, err := before.Withdraw(w.clock(t), q, w.rules)
		if err != nil {
			if !errors.Is(err, lease.ErrTooManyWithdrawn) || after != before {
				t.Fatalf("%+v became %+v, error %v", before, after, err)
			}
			return
		}
		if after.Token != before.Token || after.Clock != before.Clock || after.Retire < before.Retire {
			t.Fatalf("%+v became %+v", before, after)
		}
		mine := before.RequestID == q.RequestID
		if ended := after.LeaseID != before.LeaseID; ended != (mine && before.LeaseID != "") {
			t.Fatalf("the release of %+v made %+v of %+v", q, after, before)
		}
		if x := l.term(before.Token); mine && before.LeaseID != "" {
			x.ended, x.free = true, true
		}
		if l.record = after; after == before {
			if l.withdrawn == nil {
				l.withdrawn = make(map[string]protocol.Instant)
			}
			// That is from when the marker was set, not from when it was found.
			l.withdrawn[q.RequestID] = max(l.withdrawn[q.RequestID], after.Markers.Until(q.Mark())-2*halfSkew)
			return
		}
	}
}

func (w *world) grant(t *rapid.T, l *lock, g protocol.Grant) {
	now := w.clock(t)
	before := l.record
	after, err := before.Acquire(now, g, w.rules)
	if err != nil {
		return
	}
	if until := l.withdrawn[g.RequestID]; until > w.now {
		t.Fatalf("%+v was withdrawn until %d, and granted at %d: %+v", g, until, w.now, after)
	}
	if after == before {
		held := l.term(before.Token)
		if held == nil || held.request != g.RequestID || held.ended || held.expires <= now {
			t.Fatalf("%+v was repeated as %+v", g, before)
		}
		held.told(w, after, now, after.TTL)
		return
	}
	l.changed(t, w, after)
	for _, other := range l.grants {
		if other.ended {
			continue
		}
		if other.expires > now {
			t.Fatalf("token %d was granted at %d, while token %d is held until %d", after.Token, now, other.token, other.expires)
		}
		if other.trusted > w.now {
			t.Fatalf("token %d was granted at %d, while the holder of %d relies on its lease until %d", after.Token, w.now, other.token, other.trusted)
		}
	}
	if abandoned := after.PrevExpires != 0; abandoned != (before.LeaseID != "") {
		t.Fatalf("abandoned: %t, after %+v", abandoned, before)
	}
	x := &term{token: after.Token, request: g.RequestID, q: lease.RenewRequest{LeaseID: g.LeaseID, Token: after.Token, TTL: g.TTL}}
	x.told(w, after, now, g.TTL)
	l.grants = append(l.grants, x)
}

// told is a holder that reads an answer: it sent its request now, and counts
// from then.
func (x *term) told(w *world, r protocol.Record, now protocol.Instant, ttl time.Duration) {
	x.expires = max(x.expires, r.Expires)
	x.trusted = max(x.trusted, w.now.Add(r.Lease(lease.Name{}, now, ttl).Remaining))
}

func (l *lock) term(token fence.Token) *term {
	for _, x := range l.grants {
		if x.token == token {
			return x
		}
	}
	return nil
}

// changed checks what holds for every grant and break.
func (l *lock) changed(t *rapid.T, w *world, after protocol.Record) {
	if after.Token <= l.highest {
		t.Fatalf("token %d comes after %d", after.Token, l.highest)
	}
	if after.Clock <= l.record.Clock {
		t.Fatalf("the clock went from %d to %d", l.record.Clock, after.Clock)
	}
	if after.Token > fence.Token(max(after.Clock, w.floor()))+2 {
		t.Fatalf("token %d has run ahead of the clock %d and the floor %d", after.Token, after.Clock, w.floor())
	}
	l.highest, l.record = after.Token, after
}

func renewal(w *world, l *lock, x *term) func(*rapid.T) {
	return func(t *rapid.T) {
		now := w.clock(t)
		after, err := l.record.Renew(now, x.q, w.rules)
		if err != nil {
			if live := l.record.Token == x.token && l.record.HeldAt(now) && protocol.Instant(x.token) >= w.floor(); live {
				t.Fatalf("the lease %d is lost (%v) in %+v", x.token, err, l.record)
			}
			return
		}
		l.onlyNamed(t, x, after, now.Add(x.q.TTL) <= l.record.Expires)
		if x.ended || after.Token != x.token || after.LeaseID != x.q.LeaseID || after.Expires < l.record.Expires || after.Expires <= now {
			t.Fatalf("the lease %+v was renewed from %+v to %+v", x, l.record, after)
		}
		l.record = after
		x.told(w, after, now, x.q.TTL)
	}
}

// onlyNamed checks that a change is of the lease x and of no other, and that
// nothing changes if and only if it had been made before.
func (l *lock) onlyNamed(t *rapid.T, x *term, after protocol.Record, repeated bool) {
	if repeated != (after == l.record) {
		t.Fatalf("made before: %t, but %+v became %+v", repeated, l.record, after)
	}
	if after != l.record && (l.record.Token != x.token || l.record.LeaseID != x.q.LeaseID) {
		t.Fatalf("%+v became %+v by a request for %+v", l.record, after, x)
	}
}

func giveUp(w *world, l *lock, x *term) func(*rapid.T) {
	return func(t *rapid.T) {
		after, err := l.record.Release(lease.ReleaseRequest{LeaseID: x.q.LeaseID, Token: x.token})
		if err != nil {
			if !errors.Is(err, lease.ErrLost) || l.record.Token == x.token {
				t.Fatalf("the release of %+v in %+v: got %v", x, l.record, err)
			}
			return
		}
		l.onlyNamed(t, x, after, l.record.LeaseID == "" || l.record.Token != x.token)
		if after == l.record && !x.free {
			t.Fatalf("%+v was released before, says %+v", x, l.record)
		}
		l.record = after
		x.ended, x.free = true, true
	}
}

func breakage(w *world, l *lock, x *term) func(*rapid.T) {
	return func(t *rapid.T) {
		after, err := l.record.Break(w.clock(t), x.token, w.rules)
		if err != nil {
			return
		}
		l.onlyNamed(t, x, after, l.record.LeaseID == "")
		if after == l.record {
			return
		}
		l.changed(t, w, after)
		x.ended = true
	}
}
