package dynamolease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// noon is the time at which these tests begin.
const (
	noon   protocol.Instant = 1_893_499_200_000
	ms     protocol.Instant = 1
	second                  = 1000 * ms
	minute                  = 60 * second
	hour                    = 60 * minute
	day                     = 24 * hour
)

// Whatever callers do, the store answers and stores what Record says.
func TestTheExpressionsSayToAllCallersWhatRecordSays(t *testing.T) {
	x := newTable(t)
	for range rigor.Rounds(t) {
		rapid.Check(t, func(t *rapid.T) { compare(t, x) })
	}
}

// A pair is a store, and records that change as its items should.
type pair struct {
	table
	now   protocol.Instant
	rules protocol.Rules
	store *dynamolease.Store
	locks []*twin
}

type twin struct {
	lease.Name
	record  protocol.Record
	granted []lease.Lease
	ids     []string
}

func compare(t *rapid.T, x table) {
	p := &pair{table: x, now: noon}
	p.store = x.store(&p.now, p.rules)
	for range rapid.IntRange(1, 3).Draw(t, "locks") {
		p.locks = append(p.locks, &twin{Name: lease.Name{Namespace: "twins", Lock: lease.NewID()}})
	}
	t.Repeat(map[string]func(*rapid.T){
		"acquire": p.acquire, "acquire2": p.acquire, "acquire3": p.acquire,
		"renew": p.renew, "release": p.release, "release2": p.release, "break": p.breaks, "withdraw": p.withdraw, "withdraw2": p.withdraw, "crowd": p.crowd,
		"wait": p.wait, "wait2": p.wait, "retire": p.retire, "restore": p.restore, "get": p.get,
	})
}

func (p *pair) choose(t *rapid.T) *twin { return rapid.SampledFrom(p.locks).Draw(t, "lock") }

// past returns a lease of k, most often the last, or one that never was.
func (k *twin) past(t *rapid.T) lease.Lease {
	i := len(k.granted) - 1 - rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "age")
	if i < 0 {
		return lease.Lease{ID: lease.NewID(), Token: 1}
	}
	l := k.granted[i]
	switch rapid.SampledFrom([]string{"right", "right", "right", "right", "wrong id", "wrong token", "the largest token"}).Draw(t, "credentials") {
	case "wrong id":
		l.ID = lease.NewID()
	case "wrong token":
		l.Token++
	case "the largest token":
		l.Token = fence.Max
	}
	return l
}

// call is one that a gateway has just received, as most are.
func (p *pair) call(principal string) (context.Context, *lease.Call) {
	c := &lease.Call{Principal: principal, Received: p.now.Time()}
	return lease.WithCall(p.Context(), c), c
}

func (p *pair) gateway() context.Context {
	ctx, _ := p.call("")
	return ctx
}

func (p *pair) acquire(t *rapid.T) {
	k := p.choose(t)
	ttl := time.Duration(rapid.SampledFrom([]int{1, 2, 3600}).Draw(t, "ttl")) * time.Second
	q := lease.AcquireRequest{
		Name:      k.Name,
		TTL:       ttl,
		Holder:    rapid.SampledFrom([]string{"", "worker-1", "worker-1"}).Draw(t, "holder"),
		Metadata:  rapid.SampledFrom([]string{"", "job\n\u00e9"}).Draw(t, "metadata"),
		MinHold:   rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "minimum hold"),
		LockDelay: rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(t, "lock delay"),
	}
	k.ids = append(k.ids, lease.NewID())
	q.RequestID = k.ids[max(0, len(k.ids)-1-rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "request"))]
	ctx, call := p.call(rapid.SampledFrom([]string{"role-1", "role-1", "role-1", ""}).Draw(t, "principal"))

	got, err := p.store.Acquire(ctx, q)
	g, e := p.rules.Grant(q, call.Principal)
	if e != nil {
		t.Fatal(e)
	}
	g.LeaseID = got.ID
	next, want := k.record.Acquire(p.now, g, p.rules)
	p.check(t, k, next, err, want)
	requests := 1
	if p.now < protocol.At(p.rules.QuarantineEnd) {
		requests = 0
	}
	if want == nil {
		l := next.Lease(k.Name, p.now, next.TTL)
		if l.Repeated = next == k.record; !l.Repeated {
			k.granted = append(k.granted, l)
			if r := k.record; r.Token != 0 && (r.Clock >= p.now || protocol.Instant(r.Token) < p.rules.Floor()) {
				requests = 2
			}
		}
		if !sameLease(got, l) {
			t.Fatalf("got  %s\nwant %s", describe(got), describe(l))
		}
	}
	if call.Requests != requests {
		t.Fatalf("%d requests, want %d, for %+v", call.Requests, requests, k.record)
	}
	k.record = next
}

func (p *pair) renew(t *rapid.T) {
	k := p.choose(t)
	l := k.past(t)
	q := lease.RenewRequest{Name: k.Name, LeaseID: l.ID, Token: l.Token, TTL: time.Duration(rapid.SampledFrom([]int{1, 60, 3600}).Draw(t, "ttl")) * time.Second}
	got, err := p.store.Renew(p.gateway(), q)
	next, want := k.record.Renew(p.now, q, p.rules)
	p.check(t, k, next, err, want)
	if want == nil && !sameLease(got, next.Lease(k.Name, p.now, q.TTL)) {
		t.Fatalf("got  %s\nwant %s", describe(got), describe(next.Lease(k.Name, p.now, q.TTL)))
	}
	k.record = next
}

func (p *pair) release(t *rapid.T) {
	k := p.choose(t)
	l := k.past(t)
	q := lease.ReleaseRequest{Name: k.Name, LeaseID: l.ID, Token: l.Token}
	got, err := p.store.Release(p.gateway(), q)
	next, want := k.record.Release(q)
	p.check(t, k, next, err, want)
	if want == nil {
		state, _ := k.record.Released(p.now, q)
		p.sameState(t, got, state)
	}
	k.record = next
}

// withdraw is a release by the id of a request that was made, or is still to
// come: acquire takes that as its own sometimes.
func (p *pair) withdraw(t *rapid.T) {
	k := p.choose(t)
	k.ids = append(k.ids, lease.NewID())
	p.withdrawal(t, k, protocol.Withdrawal{
		RequestID: k.ids[max(0, len(k.ids)-1-rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(t, "request"))],
		Principal: rapid.SampledFrom([]string{"role-1", "role-1", "role-1", ""}).Draw(t, "principal"),
	})
}

// crowd leaves room for one marker, if it finds so much.
func (p *pair) crowd(t *rapid.T) {
	k := p.choose(t)
	for len(k.record.Markers.All()) < len(k.record.Markers)-1 {
		p.withdrawal(t, k, protocol.Withdrawal{RequestID: lease.NewID()})
	}
}

func (p *pair) withdrawal(t *rapid.T, k *twin, w protocol.Withdrawal) {
	ctx, call := p.call(w.Principal)
	got, err := p.store.Release(ctx, lease.ReleaseRequest{Name: k.Name, RequestID: w.RequestID})
	before, requests := k.record, 1
	next, want := k.record.Withdraw(p.now, w, p.rules)
	if want == nil && next != k.record {
		requests, k.record = 2, next
		if next, want = next.Withdraw(p.now, w, p.rules); want != nil { // there was no room, and a lease of it was ended
			want = fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, want)
		}
	}
	p.check(t, k, next, err, want)
	if want == nil {
		state := next.Withdrawn(k.Name, p.now, w)
		state.Ended = before.Withdrawn(k.Name, p.now, w).Ended
		p.sameState(t, got, state)
	}
	if call.Requests != requests {
		t.Fatalf("%d requests, want %d, for %+v", call.Requests, requests, before)
	}
}

func (p *pair) breaks(t *rapid.T) {
	k := p.choose(t)
	q := lease.BreakRequest{Name: k.Name, Token: k.past(t).Token, Reason: "test"}
	got, err := p.store.Break(p.gateway(), q)
	next, want := k.record.Break(p.now, q.Token, p.rules)
	p.check(t, k, next, err, want)
	if want == nil {
		p.sameState(t, got.State, next.State(k.Name, p.now))
		if repeated := next == k.record; got.AlreadyFree != repeated {
			t.Fatalf("already free: %t, want %t", got.AlreadyFree, repeated)
		}
	}
	k.record = next
}

func (p *pair) get(t *rapid.T) {
	k := p.choose(t)
	got, err := p.store.Get(p.Context(), k.Name)
	if err != nil {
		t.Fatal(err)
	}
	p.sameState(t, got, k.record.State(k.Name, p.now))
}

// wait turns the clock, sometimes back: another host has another.
func (p *pair) wait(t *rapid.T) {
	p.now += rapid.SampledFrom([]protocol.Instant{ms, ms, 999 * ms, second, second, 2 * second, minute, 3 * hour, 9 * day, -ms, -second, -hour}).Draw(t, "time")
	p.now = max(p.now, protocol.At(p.rules.RestoredAt)) // a store refuses rules that are still to come
}

func (p *pair) retire(t *rapid.T) {
	if k := p.choose(t); k.record.Retire < p.now.Seconds() {
		p.forget(k.Name)
		k.record = protocol.Record{}
	}
}

// restore declares that the table, as it is, came from a backup. Most often it
// waits for the end of the quarantine.
func (p *pair) restore(t *rapid.T) {
	if at := p.now.Time(); at.After(p.rules.RestoredAt) {
		p.rules.RestoredAt, p.rules.QuarantineEnd = at, p.rules.QuarantineAfter(at)
		p.store = p.table.store(&p.now, p.rules)
	}
	if rapid.IntRange(0, 3).Draw(t, "impatience") > 0 {
		p.now = max(p.now, protocol.At(p.rules.QuarantineEnd))
	}
}

// check compares an outcome, and what is stored after it.
func (p *pair) check(t *rapid.T, k *twin, next protocol.Record, err, want error) {
	if !sameError(err, want) {
		t.Fatalf("got error %v, want %v, at %d, from %+v", err, want, p.now, k.record)
	}
	item := p.item(k.Name)
	got, err := dynamolease.Decode(item)
	if err != nil {
		t.Fatal(err)
	}
	if want != nil {
		next = k.record
	}
	if got != next {
		t.Fatalf("stored %+v\nwant   %+v\nat %d", got, next, p.now)
	}
	checkAbsent(t, item, "lid", next.LeaseID == "")
	checkAbsent(t, item, "exp", next.LeaseID == "")
	checkAbsent(t, item, "meta", next.Metadata == "")
}

// checkAbsent is needed because an attribute that is empty, or zero, decodes to
// what a missing one does, and conditions tell them apart.
func checkAbsent(t *rapid.T, item map[string]types.AttributeValue, attribute string, want bool) {
	if _, found := item[attribute]; found == want {
		t.Fatalf("attribute %s: found %t in %v", attribute, found, item)
	}
}

func sameLease(a, b lease.Lease) bool {
	same := (a.Abandoned == nil) == (b.Abandoned == nil) && (a.Abandoned == nil || *a.Abandoned == *b.Abandoned)
	a.Abandoned, b.Abandoned = nil, nil
	return same && a == b
}

func (p *pair) sameState(t *rapid.T, a, b lease.State) {
	same := (a.Abandoned == nil) == (b.Abandoned == nil) && (a.Abandoned == nil || *a.Abandoned == *b.Abandoned)
	x, y := a, b
	x.Abandoned, y.Abandoned = nil, nil
	if !same || x != y {
		t.Fatalf("got  %#v\nwant %#v", a, b)
	}
}

// describe prints all of a lease; it prints itself without its id.
func describe(l lease.Lease) string {
	type all lease.Lease
	return fmt.Sprintf("%#v, abandoned %+v", all(l), l.Abandoned)
}

// The late first token of a lock is checked here and not above, where the clock
// hardly moves between two requests: seeds must come from the clock, not from
// the token that happens to be expected.
func TestAForgottenLockIsSeededFromTheClock(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	q := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Second}
	first, err := s.Acquire(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	x.forget(q.Name)
	now += 8 * day
	second, err := s.Acquire(context.Background(), q)
	if err != nil || first.Token != fence.Token(noon)+1 || second.Token != fence.Token(noon+8*day)+1 {
		t.Errorf("got tokens %d and %d, error %v", first.Token, second.Token, err)
	}
}
