package waiting

const (
	most = 3 // callers at most

	// tokensPerTick is how many tokens one tick of the clock is worth: a new item
	// starts at the clock.
	tokensPerTick = 8

	stranger = 9 // holds what was granted before the first step
)

// A ticket is an entry of the map q. Its end is 0 where there is none.
type ticket struct{ arrival, end uint8 }

// An item is what the store keeps. Every time in it was read from the clock of
// the host that wrote it. Callers are counted from 1, so that 0 is nobody.
type item struct {
	exists     bool
	tok, acq   uint8
	lid, rid   uint8 // the caller that holds, and that was granted last
	free, hold uint8
	gc         uint8
	q          [most]ticket
	x          [most]uint8 // the end of each caller's marker, or 0
}

// entries counts what size(#q) counts, expired tickets included, without that
// of caller i.
func (t item) entries(i int) (n uint8) {
	for j, k := range t.q {
		if j != i && k.end > 0 {
			n++
		}
	}
	return n
}

// place is how many unexpired tickets stand before caller i, by a clock that
// reads now. Who has no ticket is last.
func (t item) place(i int, now uint8) (p uint8) {
	for j, k := range t.q {
		if j != i && k.end > now && (t.q[i].end == 0 || t.before(j, i)) {
			p++
		}
	}
	return p
}

// before reports whether the ticket of j stands before that of i.
func (t item) before(j, i int) bool {
	a, b := t.q[j].arrival, t.q[i].arrival
	return a < b || a == b && j < i
}

type kind uint8

const (
	none    kind = iota
	first        // the first attempt of a call
	enqueue      // the write of a ticket
	try          // a waiter's grant, on the state that it saw
	release      // by lease id and token
)

// A request is one write on its way: it is carried out now, later, or twice.
type request struct {
	kind         kind
	now, born    uint8 // by the host's clock; by the true time
	tok          uint8 // that was seen
	arrival, end uint8
	drop         [most]bool // tickets that it removes
	passes       [most]bool // ghost: tickets, in the item that was seen, of earlier callers
}

// marked reports whether a marker says that caller i's request was released.
func (m *model) marked(t item, i int) bool { return t.x[i] > 0 && !m.bugs.markersIgnored }

// apply carries out r of caller i, if its condition holds on the item.
func (m *model) apply(s *state, i int, r request) (ok bool, broken string) {
	t := &s.item
	me := uint8(i + 1)
	switch r.kind {
	case first, try:
		seen := t.tok == r.tok
		if r.kind == first {
			seen = t.tok == 0 || t.acq < r.now
			if !m.bugs.firstBarges && t.entries(-1) > 0 {
				return false, ""
			}
		}
		marked := m.marked(*t, i)
		if r.kind == first && m.bugs.firstIgnoresMarker || r.kind == try && m.bugs.tryIgnoresMarker {
			marked = false
		}
		free := t.free <= r.now || r.kind == first && m.bugs.firstIgnoresFree
		if !seen || !free || t.rid == me || marked {
			return false, ""
		}
		return true, m.grant(s, i, r)
	case enqueue:
		switch {
		case !t.exists || t.tok == 0:
			return false, ""
		case t.rid == me, m.marked(*t, i) && !m.bugs.ticketRemovesMarker:
			return false, ""
		case t.q[i].end == 0 && !m.roomFor(*t, i, r):
			return false, ""
		}
		for j := range t.q {
			if r.drop[j] {
				t.q[j] = ticket{}
			}
		}
		t.q[i] = ticket{r.arrival, r.end}
		if m.bugs.ticketRemovesMarker {
			t.x[i] = 0 // ticket and marker are one entry
		}
		return true, ""
	case release:
		if t.lid != me || t.tok != r.tok {
			return false, ""
		}
		t.lid, t.free = 0, t.hold
		if m.bugs.releaseDropsHold {
			t.free = 0
		}
		return true, ""
	}
	return false, ""
}

// roomFor is the condition of a ticket's write: a place is free, or the expired
// ticket that it replaces is still there.
func (m *model) roomFor(t item, i int, r request) bool {
	for j := range t.q {
		if r.drop[j] {
			return t.q[j].end > 0 || m.bugs.replacesBlindly
		}
	}
	return t.entries(i) < m.places
}

// grant changes the item, and checks what every grant must keep.
func (m *model) grant(s *state, i int, r request) (broken string) {
	t := &s.item
	switch {
	case t.lid != 0 && t.free > r.now:
		return "EXCL: granted while a lease holds the lock"
	case t.hold > r.now:
		return "MINHOLD: granted before the minimum hold has ended"
	case s.cancelled[i]:
		return "CANCEL: granted after the release by request id was answered"
	}
	if broken := m.passedOver(s, i, r); broken != "" {
		return broken
	}
	if t.tok == 0 && !m.bugs.startsAtZero {
		t.tok = r.now * tokensPerTick
	}
	t.tok++
	if t.tok <= s.maxTok {
		return "TOKEN: a token was granted before"
	}
	s.maxTok = t.tok
	t.exists = true
	t.acq = max(t.acq+1, r.now)
	t.lid, t.rid = uint8(i+1), uint8(i+1)
	t.free = r.now + m.ttl + m.delay
	t.hold = 0
	if m.minHold > 0 {
		t.hold = r.now + m.minHold
	}
	t.gc = r.now + m.ttl + m.retention
	t.q[i] = ticket{}
	for j := range t.q {
		if r.drop[j] {
			t.q[j] = ticket{}
		}
	}
	return ""
}
