package waiting

import "github.com/pawl-lock/pawl/pkg/lease/model/explore"

// Next implements [explore.Model].
func (m *model) Next(s state, step explore.Step[state]) {
	emit := func(n state, broken, format string, args ...any) {
		switch {
		case n.item.free+m.skew > n.t:
			n.freeSince = 0
		case n.freeSince == 0 || n.item.tok != s.item.tok:
			n.freeSince = n.t + 1
		}
		if broken == "" {
			broken = m.check(n)
		}
		step(n, broken, format, args...)
	}
	m.time(s, emit)
	m.table(s, emit)
	for i := range m.callers {
		m.late(s, i, emit)
		m.cancel(s, i, emit)
		if s.callers[i].sent.kind != none {
			m.deliver(s, i, emit)
			continue
		}
		m.act(s, i, emit)
	}
}

// time passes, unless somebody has something to do first.
func (m *model) time(s state, emit explore.Step[state]) {
	if s.t >= m.until {
		return
	}
	for i, c := range s.callers[:m.callers] {
		overdue := c.phase == waiting && c.handler && c.looked+m.sleep < s.t+2
		apart := c.phase == between && s.t >= c.end+m.gap
		busy := c.sent.kind != none || c.phase == refused || c.phase == waiting && c.handler && s.t >= c.end
		if m.prompt && c.fate != dead && (busy || overdue || apart) {
			return
		}
		if m.life > 0 && c.sent.kind != none && s.t >= c.sent.born+m.life {
			return // carried out while its signature holds
		}
		if m.life > 0 && c.late.kind != none && s.t >= c.late.born+m.life {
			s.callers[i].late = request{}
		}
	}
	s.t++
	emit(s, "", "time is %d", s.t)
}

// table is what happens to the item without any caller.
func (m *model) table(s state, emit explore.Step[state]) {
	if m.breaks && !s.broke && s.item.lid != 0 {
		n := s
		n.broke = true
		n.item.tok++
		n.item.acq++
		n.item.lid, n.item.free, n.item.hold = 0, 0, 0
		n.maxTok = n.item.tok
		emit(n, "", "an operator breaks token %d", s.item.tok)
	}
	if m.retires && s.item.exists && s.item.gc < s.t+m.skew {
		n := s
		n.item = item{}
		emit(n, "", "the item is retired")
	}
	for j, end := range s.item.x {
		if end > 0 && end <= s.t+m.skew {
			n := s
			n.item.x[j] = 0
			emit(n, "", "the marker of %d, which has expired, is removed", j+1)
		}
	}
	if !m.restore || s.restored > 0 {
		return
	}
	if !s.backed {
		n := s
		n.backed, n.backup = true, s.item
		emit(n, "", "a backup is taken")
		return
	}
	n := s
	n.item, n.backup, n.restored = s.backup, item{}, s.t+1
	n.maxTok += tokensPerTick // what the floor is for, in package grants
	n.item.tok = n.maxTok
	for i := range n.callers {
		if c := &n.callers[i]; c.phase != idle { // what is under way goes to the old table
			*c = caller{phase: gone, fate: dead}
		}
	}
	emit(n, "", "the table is restored")
}

// late carries out the copy of a request of which the handler knows the answer.
func (m *model) late(s state, i int, emit explore.Step[state]) {
	late := s.callers[i].late
	if late.kind == none {
		return
	}
	s.callers[i].late = request{}
	emit(s, "", "a copy of the %v of %d is lost", late.kind, i+1)
	_, broken := m.apply(&s, i, late)
	emit(s, broken, "a copy of the %v of %d is carried out: %v", late.kind, i+1, s.item)
}

// cancel is the release by request id. It is answered at once; the handler that
// works on the request may not know.
func (m *model) cancel(s state, i int, emit explore.Step[state]) {
	c := &s.callers[i]
	switch {
	case m.cancels && c.handler && c.fate == there && c.phase != holds:
		c.fate = cancelling
		emit(s, "", "caller %d gives up without an answer", i+1)
	case c.fate == cancelling:
		t := &s.item
		now := m.clock(*c, s.t)
		if t.rid == uint8(i+1) && !m.bugs.cancelBlind {
			if t.lid == uint8(i+1) {
				t.lid, t.free = 0, t.hold
			}
		} else {
			if !t.exists {
				*t = item{exists: true, gc: now + m.retention}
			}
			t.q[i], t.x[i] = ticket{}, now+m.marker
			if !m.bugs.markerRetires {
				t.gc = max(t.gc, now+m.marker)
			}
		}
		broken := ""
		if t.lid == uint8(i+1) {
			broken = "CANCEL: the request holds the lock after its release"
		}
		c.fate, s.cancelled[i] = answered, true
		emit(s, broken, "request %d is released by its id: %v", i+1, *t)
	}
}

// deliver carries out the request of caller i, and tells its handler.
func (m *model) deliver(s state, i int, emit explore.Step[state]) {
	c := &s.callers[i]
	r := c.sent
	c.sent = request{}
	if m.twice && c.late.kind == none && r.kind != release {
		c.late = r
	}
	ok, broken := m.apply(&s, i, r)
	if broken == "" {
		broken = m.answer(&s, i, r, ok)
	}
	emit(s, broken, "the %v of %d is carried out, %v: %v", r.kind, i+1, ok, s.item)
}

// act is what caller i or its handler does next.
func (m *model) act(s state, i int, emit explore.Step[state]) {
	c := &s.callers[i]
	if m.deaths && c.handler && c.phase != holds && c.fate == there {
		n := s
		n.callers[i].handler, n.callers[i].fate, n.callers[i].phase = false, dead, gone
		emit(n, "", "the handler of %d dies", i+1)
	}
	switch {
	case c.phase == idle && s.restored > 0 && m.quarantined(s):
	case c.phase == idle:
		for ahead := range 2*m.skew + 1 {
			n := s
			c := &n.callers[i]
			c.ahead = ahead
			c.arrival = m.clock(*c, n.t)
			m.call(&n, i)
			emit(n, "", "caller %d asks, its host's clock reads %d", i+1, c.arrival)
		}
	case c.phase == between:
		m.call(&s, i)
		emit(s, "", "caller %d asks again", i+1)
	case !c.handler:
	case c.phase == refused && !m.over(s, i):
		c.sent = m.ticket(s, i)
		emit(s, "", "the handler of %d sends a ticket", i+1)
	case c.phase == waiting && c.looked != s.t+1 && !m.over(s, i):
		m.look(&s, i)
		emit(s, "", "the handler of %d looks", i+1)
	case c.phase == refused, c.phase == waiting && s.t >= c.end:
		m.leave(&s, i)
		emit(s, "", "the time of %d is over: %v", i+1, s.item)
	case c.phase == holds:
		c.phase, c.handler = done, false
		c.sent = request{kind: release, tok: c.tok, born: s.t}
		emit(s, "", "caller %d releases", i+1)
	}
}

func (k kind) String() string {
	return [...]string{"nothing", "first attempt", "ticket", "waiter's attempt", "release"}[k]
}
