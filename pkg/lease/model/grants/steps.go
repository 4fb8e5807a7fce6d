package grants

import "github.com/pawl-lock/pawl/pkg/lease/model/explore"

// Next implements [explore.Model].
func (m *model) Next(s state, step explore.Step[state]) {
	emit := func(n state, broken, format string, args ...any) {
		if broken == outOfBounds {
			return
		}
		if broken == "" {
			m.normalize(&n)
			broken = m.check(n)
		}
		step(n, broken, format, args...)
	}
	if s.t < m.until {
		n := s
		m.tick(&n)
		emit(n, "", "time is %d", n.t)
	}
	m.network(s, emit)
	for c := range m.clients {
		switch s.clients[c].phase {
		case idle:
			m.begin(s, c, emit)
		case asking:
			m.retry(s, c, emit)
		case holding:
			m.hold(s, c, emit)
		}
	}
	m.table(s, emit)
	m.operator(s, emit)
	if m.guarded {
		m.storage(s, emit)
	}
}

// network carries requests out, with and without an answer, or loses them. One
// that is never carried out is as good as lost: losing it only makes room.
func (m *model) network(s state, emit explore.Step[state]) {
	full := s.flying[m.inFlight-1].kind != nothing
	for i, r := range s.flying[:m.inFlight] {
		if r.kind == nothing {
			continue
		}
		if r.waits {
			n := s
			broken := m.deliver(&n, i, true)
			emit(n, broken, "%v with token %d by the clock %d is carried out and answered: %v", r.kind, r.tok, r.now, n.item)
		}
		n := s
		broken := m.deliver(&n, i, false)
		emit(n, broken, "%v with token %d by the clock %d is carried out without an answer: %v", r.kind, r.tok, r.now, n.item)
		if full {
			n = s
			n.flying[i] = request{}
			emit(n, "", "%v with token %d by the clock %d is lost", r.kind, r.tok, r.now)
		}
	}
}

// begin starts an acquire. Clients come in the order of their numbers: what
// differs in their names only is visited once.
func (m *model) begin(s state, c int, emit explore.Step[state]) {
	if s.clients[c].asked == m.requestIDs || c > 0 && s.clients[c-1].asked == 0 {
		return
	}
	clocks := m.clocks(s.t)
	if m.ahead > 0 && s.grants == 0 {
		clocks = append(clocks, s.t+m.ahead)
	}
	mine := uint8(c)*m.requestIDs + s.clients[c].asked + 1
	for rid := uint8(1); rid <= uint8(m.config.clients)*m.requestIDs; rid++ {
		if rid != mine && !m.guesses {
			continue
		}
		for _, now := range clocks {
			n := s
			n.clients[c] = client{phase: asking, asked: s.clients[c].asked + 1, rid: rid, sent: s.t, retries: m.retries}
			if m.ask(&n, c, now) {
				emit(n, "", "client %d acquires with request id %d, by the clock %d", c+1, rid, now)
			}
		}
	}
}

// retry repeats an acquire with its request id, hears a late answer, or gives up.
func (m *model) retry(s state, c int, emit explore.Step[state]) {
	k := s.clients[c]
	if k.retries > 0 {
		for _, now := range m.clocks(s.t) {
			n := s
			n.clients[c].retries--
			n.clients[c].sent = s.t
			if m.ask(&n, c, now) {
				emit(n, "", "client %d repeats request id %d, by the clock %d", c+1, k.rid, now)
			}
		}
	}
	if k.acquired.valid {
		n := s
		broken := m.hearAcquired(&n, c)
		emit(n, broken, "client %d hears that it was granted: %v", c+1, k.acquired.granted)
	}
	if k.asked < m.requestIDs {
		n := s
		n.clients[c] = client{asked: k.asked}
		emit(n, "", "client %d gives up request id %d", c+1, k.rid)
	}
}

// hold renews and releases.
func (m *model) hold(s state, c int, emit explore.Step[state]) {
	k := s.clients[c]
	if k.renewals > 0 && (k.tok >= m.floor(s) || m.bugs.renewIgnoresFloor) {
		for _, now := range m.clocks(s.t) {
			n := s
			n.clients[c].renewals--
			if m.bugs.assumesRenewed {
				n.clients[c].deadline = s.t + s.limits - m.margin
			}
			if m.send(&n, request{
				kind: renew, client: uint8(c), rid: k.rid, lid: k.lid, tok: k.tok, now: now, exp: now + s.limits,
				ttl: s.limits, sent: s.t, grant: k.grant, copies: m.copies, waits: true,
			}) {
				emit(n, "", "client %d renews token %d, by the clock %d", c+1, k.tok, now)
			}
		}
	}
	if k.renewed.valid {
		n := s
		m.hearRenewed(&n, c)
		emit(n, "", "client %d hears that it was renewed: %v", c+1, k.renewed.granted)
	}
	n := s
	if m.send(&n, request{
		kind: release, client: uint8(c), rid: k.rid, lid: k.lid, tok: k.tok, grant: k.grant,
		copies: m.copies, waits: m.past,
	}) {
		if !m.bugs.trustsAfterRelease {
			n.clients[c] = client{asked: k.asked}
		}
		emit(n, "", "client %d releases token %d", c+1, k.tok)
	}
}

// operator breaks a lease, and changes the limits after a restore.
func (m *model) operator(s state, emit explore.Step[state]) {
	if m.laterTTL > 0 && s.restored && s.limits != m.laterTTL {
		n := s
		n.limits = m.laterTTL
		emit(n, "", "the maximum TTL becomes %d", m.laterTTL)
	}
	if !m.config.breaks || s.broke || s.item.lid == 0 {
		return
	}
	for _, now := range m.clocks(s.t) {
		n := s
		n.broke = true
		if now < m.quarantineEnd(s) && !m.bugs.breaksInQuarantine {
			continue
		}
		if m.send(&n, request{
			kind: breaks, client: mostClients, tok: s.item.tok, now: now, grant: s.item.grant, copies: m.copies,
		}) {
			emit(n, "", "an operator breaks token %d, by the clock %d", s.item.tok, now)
		}
	}
}
