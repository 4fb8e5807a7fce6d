package grants

// send puts r on its way, if there is room.
func (m *model) send(s *state, r request) bool {
	if m.life > 0 {
		r.born = s.t
	}
	for i := range m.inFlight {
		if s.flying[i].kind == nothing {
			s.flying[i] = r
			return true
		}
	}
	return false
}

// ask sends the acquire of client c from a host whose clock reads now.
func (m *model) ask(s *state, c int, now uint8) bool {
	if now < m.quarantineEnd(*s) {
		return false
	}
	s.open = s.restored
	k := s.clients[c]
	r := request{
		kind: fast, client: uint8(c), rid: k.rid, lid: k.rid, sub: uint8(c + 1),
		now: now, ttl: s.limits, sent: s.t, copies: m.copies, waits: true,
	}
	if m.bugs.leaseIDPerClient {
		r.lid = uint8(c + 1)
	}
	if m.guesses {
		r.lid = k.rid*mostClients + uint8(c) // the service makes up each
	}
	if m.bugs.readsThenWrites {
		r.applied = !s.item.exists || s.item.free <= now
	}
	return m.send(s, r)
}

// tell gives the client of r an answer, if it still waits for that.
func (m *model) tell(s *state, r request, a answer) string {
	c := &s.clients[r.client]
	if c.phase != asking || c.rid != r.rid {
		return ""
	}
	a.valid, a.sent = true, r.sent
	if c.acquired = a; m.lateAnswers {
		return ""
	}
	return m.hearAcquired(s, int(r.client))
}

// hearAcquired is what a client does with the answer to its acquire.
func (m *model) hearAcquired(s *state, i int) string {
	c := &s.clients[i]
	a := c.acquired
	if a.granted && (a.rid != c.rid || a.sub != uint8(i+1)) {
		return "REPLAY: answered with the grant of another request or caller"
	}
	deadline := m.trust(*s, a)
	if !a.granted || deadline <= s.t {
		*c = client{asked: c.asked}
		return ""
	}
	*c = client{
		phase: holding, asked: c.asked, rid: c.rid, tok: a.tok, lid: a.lid, grant: a.grant,
		deadline: deadline, renewals: m.renewals,
	}
	return ""
}

// hearRenewed is what a client does with the answer to a renewal.
func (m *model) hearRenewed(s *state, i int) {
	c := &s.clients[i]
	a := c.renewed
	c.renewed = answer{}
	if !a.granted {
		*c = client{asked: c.asked}
		return
	}
	c.deadline = max(c.deadline, m.trust(*s, a))
}

// trust is until when a client trusts what it was told: counted from before it
// asked.
func (m *model) trust(s state, a answer) uint8 {
	from := a.sent
	if m.bugs.deadlineFromReceipt {
		from = s.t
	}
	return max(from+a.remaining, m.margin) - m.margin
}

// tick ends what ends with the time.
func (m *model) tick(s *state) {
	s.t++
	for i := range s.clients {
		if c := &s.clients[i]; c.phase == holding && s.t >= c.deadline {
			*c = client{asked: c.asked} // it declares its lease lost
		}
	}
	for i, r := range s.flying {
		if m.life > 0 && r.kind != nothing && s.t-r.born > m.life {
			s.flying[i] = request{}
		}
	}
}

// restore puts the backup in the place of the table, by a clock that reads now.
func (m *model) restore(s *state, now uint8) {
	s.item, s.backup = s.backup, item{}
	s.restored, s.restoredAt, s.before = true, now, s.grants
	s.flying = [mostFlying]request{} // they went to the old table
}
