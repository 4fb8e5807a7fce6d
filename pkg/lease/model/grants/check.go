package grants

import "fmt"

// trusts reports whether client c trusts its lease, and nobody has broken it.
func (s state) trusts(c client) bool {
	return c.phase == holding && s.t < c.deadline && s.broken&(1<<c.grant) == 0
}

// check looks at every state.
func (m *model) check(s state) string {
	holders := 0
	for i, c := range s.clients[:m.config.clients] {
		if !s.trusts(c) {
			continue
		}
		holders++
		t := s.item
		if !m.unbounded && !s.restored && (!t.exists || t.grant != c.grant || t.lid == 0) {
			return fmt.Sprintf("BELIEF: client %d trusts grant %d, which the item does not hold", i+1, c.grant)
		}
		if c.grant > s.before && c.tok < m.floor(s) {
			return fmt.Sprintf("FLOOR: the lease of client %d is of after the restore, and below the floor", i+1)
		}
	}
	switch used := s.broke; {
	case holders > 1 && !m.unbounded:
		return "EXCLUSION: two clients trust a lease"
	case !m.drifts && s.item.exists && s.item.tok > max(s.item.acq, m.floor(s))+1+bit(used):
		return fmt.Sprintf("DRIFT: the counter is %d, the clock of the grants %d", s.item.tok, s.item.acq)
	case s.open && s.t < m.quarantineEnd(s)-min(m.skew, m.quarantineEnd(s)):
		return "REOPENED: a quarantine that had ended has begun again"
	case m.stuck(s):
		return "LIVE: the lock is free, and an acquire is refused"
	}
	return ""
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// stuck reports whether a free lock is not granted in two requests, by a host
// whose clock is right.
func (m *model) stuck(s state) bool {
	if s.t < m.quarantineEnd(s) || s.item.exists && s.item.free > s.t {
		return false
	}
	const newcomer = 200
	r := request{kind: fast, rid: newcomer, lid: newcomer, now: s.t, ttl: s.limits, applied: true}
	if _, ok := m.apply(s.item, r, m.floor(s)); ok {
		return false
	}
	r.kind, r.tok, r.acq = slow, s.item.tok, m.slowClock(s.item.acq, s.t)
	_, ok := m.apply(s.item, r, m.floor(s))
	return !ok || m.bugs.noSlowPath
}
