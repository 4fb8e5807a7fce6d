package grants

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-lock/pawl/pkg/lease/model/explore"
)

// table is what happens to the item without any request: retirement, by the
// clock of some host, and a restore.
func (m *model) table(s state, emit explore.Step[state]) {
	for _, now := range m.clocks(s.t) {
		if m.retires && s.item.exists && m.retirable(s, now) {
			n := s
			n.item = item{}
			emit(n, "", "the item is retired, by the clock %d", now)
		}
	}
	switch {
	case !m.restores || s.restored:
	case !s.backed:
		n := s
		n.backed, n.backup = true, s.item
		emit(n, "", "a backup is taken: %v", s.item)
	default:
		for _, now := range m.clocks(s.t) {
			n := s
			m.restore(&n, now)
			emit(n, "", "the table is restored: %v; floor %d, quarantine until %d", n.item, m.floor(n), m.quarantineEnd(n))
		}
	}
}

// retirable goes by the stored attribute, or allows even what that does not yet:
// as DRIFT says, the counter is near the clock of the grants, or the floor.
func (m *model) retirable(s state, now uint8) bool {
	t := s.item
	if m.storedRetirement {
		return t.gc < now*m.units
	}
	idle := t.free+m.retention < now || m.bugs.retiresInUse
	from := int(max(t.acq, m.floor(s)))
	return idle && (from+int(m.retention*m.units) < int(now)*int(m.units) || m.bugs.retiresAboveClock)
}

// storage takes a write of any grant that there ever was, at any time.
func (m *model) storage(s state, emit explore.Step[state]) {
	for g := uint8(1); g <= s.grants; g++ {
		tok := s.tokens[g-1]
		accepted := tok >= s.guardTok
		switch b := m.bugs; {
		case b.guardBackwards:
			accepted = s.guardTok >= tok || s.guardTok == 0
		case b.guardStrict:
			accepted = tok > s.guardTok
		}
		if !accepted {
			if g == s.grants {
				emit(s, "LOCKOUT: the newest grant is refused", "storage refuses token %d", tok)
			}
			continue
		}
		n, broken := s, ""
		if g < s.guardGrant {
			broken = fmt.Sprintf("FENCING: a write of grant %d came after one of grant %d", g, s.guardGrant)
		}
		if !m.bugs.guardDoesNotStore {
			n.guardTok = tok
		}
		n.guardGrant = max(g, s.guardGrant)
		emit(n, broken, "storage takes a write with token %d, of grant %d", tok, g)
	}
}

// normalize makes states equal that can only go on alike: requests have no order,
// and one that can never again change anything is dropped. That is so while
// tokens only grow in the item: not where it can be deleted or replaced.
func (m *model) normalize(s *state) {
	if !m.retires && !m.restores && m.bugs == (bugs{}) {
		for i, r := range s.flying {
			if r.kind != nothing && !r.waits && m.ineffective(s.item, r) {
				s.flying[i] = request{}
			}
		}
	}
	slices.SortFunc(s.flying[:], func(a, b request) int {
		if a == b {
			return 0
		}
		x, y := a.fields(), b.fields()
		return -slices.CompareFunc(x[:], y[:], cmp.Compare[uint8])
	})
}

func (m *model) ineffective(t item, r request) bool {
	switch r.kind {
	case fast:
		return t.exists && t.acq >= r.now*m.units
	case slow:
		return t.tok != r.tok
	case renew:
		return t.tok != r.tok || t.lid != r.lid || t.exp >= r.exp
	}
	return t.tok != r.tok || t.lid == 0
}

func (r request) fields() [15]uint8 {
	flags := uint8(0)
	if r.waits {
		flags++
	}
	if r.applied {
		flags += 2
	}
	return [...]uint8{
		uint8(r.kind), r.client, r.rid, r.lid, r.sub, r.tok, r.acq, r.now, r.exp, r.ttl,
		r.sent, r.born, r.grant, r.copies, flags,
	}
}
