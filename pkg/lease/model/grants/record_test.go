package grants

import (
	"strconv"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/model/explore"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// One unit of the model is a millisecond of the record.

func (m *model) instant(tick uint8) protocol.Instant {
	return protocol.Instant(tick) * protocol.Instant(m.units)
}

func (m *model) duration(ticks uint8) time.Duration {
	return time.Duration(ticks) * time.Duration(m.units) * time.Millisecond
}

func name(kind string, n uint8) string {
	if n == 0 {
		return ""
	}
	return kind + strconv.Itoa(int(n))
}

// record is the item t as [protocol.Record] has it. What neither compares is left out.
func (m *model) record(t item) protocol.Record {
	r := protocol.Record{
		Token: fence.Token(t.tok), Clock: protocol.Instant(t.acq), LeaseID: name("lease", t.lid),
		RequestID: name("request", t.rid), Principal: name("client", t.sub), Holder: name("client", t.sub),
		Expires: m.instant(t.exp), Free: m.instant(t.free), Hold: m.instant(t.hold), TTL: m.duration(t.ttl),
		PrevToken: fence.Token(t.ptok), PrevExpires: m.instant(t.pexp), PrevHolder: name("client", t.psub),
	}
	if t.exists {
		r.Delay = m.duration(m.grace)
	}
	return r
}

// rules have the floor: it is a constant after the time of a restore.
func rules(floor uint8) protocol.Rules {
	if floor == 0 {
		return protocol.Rules{}
	}
	sinceRestore := protocol.Rules{RestoredAt: time.UnixMilli(1)}.Floor() - 1
	return protocol.Rules{RestoredAt: time.UnixMilli(int64(floor) - int64(sinceRestore))}
}

// byRecord carries out r on the record of t.
func (m *model) byRecord(t item, r request, floor uint8) (protocol.Record, error) {
	record, now, rules := m.record(t), m.instant(r.now), rules(floor)
	switch r.kind {
	case fast, slow:
		return record.Acquire(now, protocol.Grant{
			LeaseID: name("lease", r.lid), RequestID: name("request", r.rid), Principal: name("client", r.sub),
			Holder: name("client", r.sub), TTL: m.duration(r.ttl), MinHold: m.duration(m.minHold), Delay: m.duration(m.grace),
		}, rules)
	case renew:
		return record.Renew(now, lease.RenewRequest{
			LeaseID: name("lease", r.lid), Token: fence.Token(r.tok), TTL: m.duration(r.ttl),
		}, rules)
	case release:
		return record.Release(lease.ReleaseRequest{LeaseID: name("lease", r.lid), Token: fence.Token(r.tok)})
	}
	return record.Break(now, fence.Token(r.tok), rules)
}

// agree compares one evaluation of the model with what the record says. The
// conditions of a fast and of a slow grant refuse more than the record does: the
// one where the clock of the grants is not behind, the other where the item has
// changed.
func (m *model) agree(t item, r request, floor uint8, after item, ok bool) bool {
	if r.kind == renew && r.tok < floor {
		return true // it is refused before it is sent
	}
	next, err := m.byRecord(t, r, floor)
	before := m.record(t)
	if !ok {
		others := r.kind == fast && t.exists && (t.acq >= r.now*m.units || t.tok < floor) || r.kind == slow && t.tok != r.tok
		return others || err != nil || next == before
	}
	next.Since, next.Retire = 0, 0
	want := m.record(after)
	if !m.past {
		next.PrevToken, next.PrevExpires, next.PrevHolder = 0, 0, ""
	}
	return err == nil && next == want
}

// The model and [protocol.Record] are two statements of one protocol. This holds them
// against each other wherever the model goes.
func TestTheModelAgreesWithTheRecord(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*config)
	}{
		{"two attempts", func(c *config) { c.past = true; c.times(3, 1, 2, 0, 0, 2) }},
		{"renewals", func(c *config) { c.past = true; c.times(5, 2, 1, 0, 2, 1) }},
		{"minimum hold, break", func(c *config) { c.past, c.breaks, c.minHold = true, true, 1; c.times(5, 2, 1, 0, 0, 1) }},
		{"guessed request ids", func(c *config) { c.guesses = true; c.times(4, 2, 1, 0, 0, 1) }},
		{"ticks of one token", func(c *config) { c.past, c.units = true, 1; c.times(4, 1, 2, 0, 0, 1) }},
		{"restore, break", func(c *config) { c.past, c.breaks, c.restores = true, true, true; c.times(6, 1, 1, 0, 0, 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bounds := base()
			c.set(&bounds)
			m := &model{config: bounds}
			type evaluation struct {
				before, after item
				r             request
				floor         uint8
				ok            bool
			}
			kinds := make(map[kind]int)
			seen := make(map[evaluation]bool)
			m.evaluated = func(before item, r request, floor uint8, after item, ok bool) {
				after.grant = before.grant
				e := evaluation{before, after, r, floor, ok}
				if seen[e] || t.Failed() {
					return
				}
				seen[e] = true
				if ok {
					kinds[r.kind]++
				}
				if !m.agree(before, r, floor, after, ok) {
					next, err := m.byRecord(before, r, floor)
					t.Errorf("%v %+v of %+v, floor %d: the model says %v, %+v;\nthe record says %+v, %v",
						r.kind, r, before, floor, ok, m.record(after), next, err)
				}
			}
			if r := explore.Run(m, 150_000); r.Broken != "" {
				t.Error(r.Broken)
			}
			if kinds[fast] == 0 || kinds[release] == 0 {
				t.Errorf("carried out: %v", kinds)
			}
			t.Logf("%d evaluations; carried out %v", len(seen), kinds)
		})
	}
}
