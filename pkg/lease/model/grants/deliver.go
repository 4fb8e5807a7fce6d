package grants

import "fmt"

// deliver carries out the request flying[i]. informed says that its answer
// reaches the handler, which goes on by it.
func (m *model) deliver(s *state, i int, informed bool) (broken string) {
	r := s.flying[i]
	floor := m.floor(*s)
	before := s.item
	after, ok := m.apply(before, r, floor)
	if m.evaluated != nil {
		m.evaluated(before, r, floor, after, ok)
	}
	if ok {
		if broken := m.note(s, r, before, &after); broken != "" {
			return broken
		}
		s.item = after
		r.applied = true
	}
	waits := r.waits
	r.copies--
	r.waits = waits && !informed
	if s.flying[i] = r; r.copies == 0 {
		s.flying[i] = request{}
	}
	if !waits || !informed {
		return ""
	}
	switch r.kind {
	case fast, slow:
		return m.acquired(s, r, ok)
	case renew:
		m.renewed(s, r, ok)
	case release:
		return m.releasedAnswer(*s, r, ok)
	}
	return ""
}

// note checks what a change of the item means, and keeps the ghosts.
func (m *model) note(s *state, r request, before item, after *item) (broken string) {
	switch r.kind {
	case fast, slow:
		if r.applied && !m.bugs.readsThenWrites {
			return "DUPLICATE: one request to acquire was granted twice"
		}
		if m.minHold > 0 && before.hold > r.now {
			return "MINHOLD: granted before the minimum hold has ended"
		}
		if broken := m.abandoned(*s, before, *after); broken != "" {
			return broken
		}
		broken = m.count(s, after.tok)
		after.grant = s.grants
	case renew, release:
		if before.grant != r.grant && !s.restored {
			return fmt.Sprintf("FOREIGN: %v of grant %d changed the lease of grant %d", r.kind, r.grant, before.grant)
		}
		if r.kind == renew {
			s.broken &^= 1 << r.grant // told that it holds again, it has no excuse any more
		} else if m.past {
			s.released |= 1 << r.grant
		}
	case breaks:
		if before.grant != r.grant {
			return fmt.Sprintf("FOREIGN: the break of grant %d ended grant %d", r.grant, before.grant)
		}
		if !m.bugs.breakDoesNotCount {
			broken = m.count(s, after.tok)
		}
		s.broken |= 1 << before.grant
	}
	return broken
}

// outOfBounds ends a search at a state that the arrays have no room for.
const outOfBounds = "outside of the bounds"

// count notes a token that was given to a grant or used up by a break.
func (m *model) count(s *state, tok uint8) (broken string) {
	switch {
	case s.grants > 0 && tok <= s.maxTok:
		return fmt.Sprintf("TOKEN: grant %d has token %d, and %d was used before", s.grants+1, tok, s.maxTok)
	case s.grants == mostGrants:
		return outOfBounds
	}
	if m.guarded {
		s.tokens[s.grants] = tok
	}
	s.grants++
	s.maxTok = tok
	return ""
}

// abandoned checks what a grant tells of the lease before. What the old table
// knew is lost in a restore.
func (m *model) abandoned(s state, before, after item) string {
	if !m.past || s.restored {
		return ""
	}
	ended := (s.released|s.broken)&(1<<before.grant) != 0
	if ranOut := before.grant > 0 && !ended; ranOut != (after.pexp > 0) {
		return fmt.Sprintf("ABANDONED: grant %d ran out: %v; told: %v", before.grant, ranOut, after.pexp > 0)
	}
	if after.ptok != before.tok || after.psub != before.sub {
		return "ABANDONED: told of another lease than that which was replaced"
	}
	return ""
}

// acquired is how the handler of an acquire goes on.
func (m *model) acquired(s *state, r request, ok bool) string {
	t := s.item
	yes := answer{granted: true, rid: t.rid, sub: t.sub, tok: t.tok, lid: t.lid, grant: t.grant}
	switch {
	case ok:
		yes.remaining = r.ttl
		return m.tell(s, r, yes)
	case t.exists && t.rid == r.rid && !m.bugs.spentIgnored:
		own := t.sub == r.sub || m.bugs.anyPrincipal
		if !own || t.lid == 0 || t.exp <= r.now || t.tok < m.floor(*s) {
			return m.tell(s, r, answer{}) // spent, or the conflict with another caller
		}
		yes.remaining = m.capped(t.exp-r.now, t.ttl)
		if m.bugs.fullTTLForRepeat {
			yes.remaining = t.ttl
		}
		return m.tell(s, r, yes)
	case t.free > r.now:
		if t.rid == r.rid && t.sub == r.sub && t.lid != 0 {
			return "REFUSED: the holder's own repeat was told that another holds the lock"
		}
		return m.tell(s, r, answer{})
	case m.bugs.noSlowPath:
		return m.tell(s, r, answer{})
	}
	n := r
	n.kind, n.tok, n.acq = slow, t.tok, m.slowClock(t.acq, r.now)
	n.copies, n.waits, n.applied = m.copies, true, false
	if !m.send(s, n) {
		return outOfBounds
	}
	return ""
}

// slowClock is what a slow grant writes to acq.
func (m *model) slowClock(old, now uint8) uint8 {
	n := now * m.units
	switch {
	case m.bugs.slowClockIsNow:
		return n
	case m.bugs.slowClockIsMax:
		return max(old, n)
	}
	return max(old+1, n)
}

// capped keeps a host whose clock is behind from promising more than the TTL.
func (m *model) capped(remaining, ttl uint8) uint8 {
	if m.bugs.remainingNotCapped {
		return remaining
	}
	return min(remaining, ttl)
}

// renewed is what the handler of a renewal answers.
func (m *model) renewed(s *state, r request, ok bool) {
	t, c := s.item, &s.clients[r.client]
	if c.phase != holding || c.tok != r.tok {
		return
	}
	a := answer{valid: true, sent: r.sent, granted: true}
	switch {
	case ok:
		a.remaining = r.ttl
	case t.exists && t.lid == r.lid && t.tok == r.tok && t.exp > r.now:
		a.remaining = m.capped(t.exp-r.now, r.ttl) // it lives longer already
	default:
		a.granted = false
	}
	if c.renewed = a; !m.lateAnswers {
		m.hearRenewed(s, int(r.client))
	}
}

// releasedAnswer checks what the handler of a release answers when the condition
// failed: released before, or lost. It reaches one generation back.
func (m *model) releasedAnswer(s state, r request, ok bool) string {
	t := s.item
	said := t.tok == r.tok && t.lid == 0 || t.ptok == r.tok && (t.pexp == 0 || m.bugs.releasedHoweverItEnded)
	if m.bugs.noSecondRule {
		said = t.tok == r.tok && t.lid == 0
	}
	released := s.released&(1<<r.grant) != 0
	switch {
	case ok:
	case said && !released:
		return fmt.Sprintf("RELEASED: said of grant %d, which was not released", r.grant)
	case !said && released && s.grants <= r.grant+1 && t.exists && !s.restored:
		return fmt.Sprintf("REPEATED: grant %d was released, and its repeat is told that it is lost", r.grant)
	}
	return ""
}
