package waiting

// call starts a call of caller i with its first attempt.
func (m *model) call(s *state, i int) {
	c := &s.callers[i]
	c.phase, c.handler = asked, true
	c.calls++
	c.end = s.t + m.wait
	c.looked, c.seenAt, c.seenTok, c.place = 0, 0, 0, 0
	c.sent = request{kind: first, now: m.clock(*c, s.t), born: s.t}
}

// again reports whether caller i will come back when this call has ended.
func (m *model) again(c caller) bool { return c.calls < m.calls && c.fate == there }

// over reports whether the call of caller i has ended: its handler looks once
// more at the end, and does nothing after that. A handler that was frozen is told
// so by the age of its call.
func (m *model) over(s state, i int) bool {
	switch c := s.callers[i]; {
	case m.bugs.noLastLook:
		return s.t >= c.end
	case m.bugs.frozenGoesOn:
		return false
	default:
		return s.t > c.end
	}
}

// leave ends a call without a grant. The service removes the ticket, unless the
// caller comes back for it.
func (m *model) leave(s *state, i int) {
	c := &s.callers[i]
	c.handler, c.phase = false, gone
	if m.again(*c) {
		c.phase, c.end = between, s.t
		return
	}
	s.item.q[i] = ticket{}
}

// ticket is the write that puts caller i into the queue, as the item that it saw
// asks for: with its old arrival if it was there before, and in the place of an
// expired ticket if there is no other.
func (m *model) ticket(s state, i int) request {
	c := s.callers[i]
	now := m.clock(c, s.t)
	r := request{kind: enqueue, now: now, born: s.t, arrival: c.arrival}
	if m.bugs.newArrival {
		r.arrival = now
	}
	r.end = now + c.end - s.t + 1 // rounded up
	if !m.bugs.endsWithCall {
		r.end += 2 * m.skew
	}
	if m.again(c) {
		r.end += m.gap
	}
	if s.item.entries(i) >= m.places && s.item.q[i].end == 0 {
		for j, k := range s.item.q {
			if k.end > 0 && k.end <= now {
				r.drop[j] = true
				break
			}
		}
	}
	return r
}

// look is one strong read by the handler of caller i, and what it does next.
// What the item says of the request itself comes before any time.
func (m *model) look(s *state, i int) {
	c := &s.callers[i]
	t := s.item
	c.looked = s.t + 1
	if m.settled(s, i) {
		return
	}
	now := m.clock(*c, s.t)
	if t.free > now {
		c.seenAt = 0
		m.requeue(s, i)
		return
	}
	place := t.place(i, now)
	if place > 0 && t.free > 0 && t.free+2*m.skew > now && !m.bugs.freeByOneClock {
		c.seenAt = 0 // who stands before may not see it free yet
		m.requeue(s, i)
		return
	}
	if c.seenAt == 0 || c.seenTok != t.tok || c.place != place && !m.bugs.countsOn || m.bugs.startsOver {
		c.seenAt, c.seenTok, c.place = s.t+1, t.tok, place
	}
	need := m.patience * place
	switch {
	case m.bugs.noPatience:
		need = 0
	case m.bugs.flatPatience:
		need = min(need, m.patience)
	}
	if place == 0 || s.t+1-c.seenAt >= need {
		c.sent = m.attempt(*s, i)
		return
	}
	m.requeue(s, i)
}

// requeue puts a waiter without a ticket back, if there is room: it was passed
// over, or found none before.
func (m *model) requeue(s *state, i int) {
	if s.item.q[i].end > 0 || !s.item.exists || s.item.tok == 0 || s.t >= s.callers[i].end {
		return
	}
	if r := m.ticket(*s, i); m.roomFor(s.item, i, r) {
		s.callers[i].sent = r
	}
}

// settled ends the call of caller i if the item tells of its request: granted,
// by an attempt whose answer is not known, or released by its id.
func (m *model) settled(s *state, i int) bool {
	c := &s.callers[i]
	switch me := uint8(i + 1); {
	case s.item.rid == me && s.item.lid == me:
		c.phase, c.tok = holds, s.item.tok
	case s.item.rid == me || m.marked(s.item, i):
		c.handler, c.phase = false, gone
	default:
		return false
	}
	return true
}

// attempt is a waiter's grant on the state that it saw. It removes the tickets
// that have expired, and those before its own. On an item without a token it is
// the form of a first attempt.
func (m *model) attempt(s state, i int) request {
	now := m.clock(s.callers[i], s.t)
	r := request{kind: try, now: now, born: s.t, tok: s.item.tok}
	mine := s.item.q[i].end > 0
	for j, k := range s.item.q {
		there := j != i && k.end > 0
		r.drop[j] = there && (k.end <= now || !mine || s.item.before(j, i))
		r.passes[j] = there && (!mine || s.callers[j].arrival < s.callers[i].arrival || r.drop[j])
	}
	return r
}

// answer is what the handler of caller i makes of the outcome of r.
func (m *model) answer(s *state, i int, r request, ok bool) (broken string) {
	c := &s.callers[i]
	if !c.handler {
		return ""
	}
	switch {
	case r.kind == first && !ok, r.kind == try && !ok:
		if m.settled(s, i) {
			return ""
		}
		now := m.clock(*c, s.t)
		free := s.item.free <= now
		switch {
		case r.kind == first && free && s.item.place(i, now) == 0 && !m.over(*s, i):
			c.sent = m.attempt(*s, i) // judges the item as a look would
		case c.phase == asked:
			c.phase = refused
		}
	case r.kind == first, r.kind == try:
		c.phase, c.tok = holds, s.item.tok
		if c.fate == answered {
			return "CANCEL: granted to a caller that was told of its release"
		}
	case r.kind == enqueue && ok:
		c.phase = waiting
		if m.sleep > 1 && c.looked == 0 {
			c.looked = s.t // it is not due at once
		}
	case r.kind == enqueue && !m.settled(s, i):
		c.phase = waiting // without a ticket: it counts as the last in line
	}
	return ""
}
