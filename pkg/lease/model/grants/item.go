package grants

// An item is what the store keeps of the lock. Times are in ticks; tok, acq, ptok
// and gc are in units, of which one tick has [config.units].
type item struct {
	exists               bool
	tok, acq             uint8
	lid, rid, sub        uint8
	exp, free, hold, ttl uint8
	ptok, pexp, psub     uint8
	gc                   uint8
	grant                uint8 // ghost: which grant this lease is, counted from 1
}

type kind uint8

const (
	nothing kind = iota
	fast         // acquire, whatever the item is
	slow         // acquire, on the item that was seen
	renew
	release
	breaks
)

func (k kind) String() string {
	return [...]string{"nothing", "acquire", "acquire (slow)", "renew", "release", "break"}[k]
}

// A request is one write on its way.
type request struct {
	kind           kind
	client         uint8
	rid, lid, sub  uint8
	tok, acq       uint8
	now, exp, ttl  uint8
	sent, born     uint8 // true times: before the client asked; when it was signed
	grant          uint8 // ghost: which grant it is about
	copies         uint8 // how often it may still be carried out
	waits, applied bool  // somebody waits for the answer; it was carried out before
}

// apply carries out r, if its condition holds. It is what the expressions say,
// and what [protocol.Record] says: a test compares the two.
func (m *model) apply(t item, r request, floor uint8) (item, bool) {
	switch r.kind {
	case fast, slow:
		return m.acquire(t, r, floor)
	case renew:
		return m.renew(t, r)
	case release:
		return m.release(t, r)
	}
	return m.breakLease(t, r, floor)
}

func (m *model) acquire(t item, r request, floor uint8) (item, bool) {
	b := m.bugs
	if b.grantIgnoresFloor {
		floor = 0
	}
	free := !t.exists || t.free <= r.now
	unspent := !t.exists || t.rid != r.rid || b.spentIgnored
	var tok uint8
	acq, ok := r.acq, free && unspent
	switch {
	case r.kind == fast && !t.exists:
		tok, acq = r.now*m.units+1, r.now*m.units
		if b.startsAtZero {
			tok = 1
		}
	case r.kind == fast:
		tok, acq = t.tok+1, r.now*m.units
		newer := (t.acq < acq || b.fastIgnoresClock) && (t.tok >= floor || b.fastIgnoresFloor)
		switch {
		case b.fastIgnoresFree:
			ok = newer && unspent
		case b.fastWithoutParentheses:
			ok = t.acq < acq || free && unspent
		default:
			ok = ok && newer
		}
	case b.slowWithoutCompare:
		tok, ok = t.tok+1, ok && t.exists
	default:
		tok, ok = next(r.tok, floor), ok && t.exists && t.tok == r.tok
		if b.slowDoesNotJump {
			tok = r.tok + 1
		}
	}
	if b.readsThenWrites && r.kind == fast {
		ok = r.applied // decided by a read before
	}
	if !ok {
		return t, false
	}
	n := item{
		exists: true, tok: tok, acq: acq, lid: r.lid, rid: r.rid, sub: r.sub,
		exp: r.now + r.ttl, free: r.now + r.ttl + m.grace, ttl: r.ttl, grant: t.grant,
	}
	if m.minHold > 0 {
		n.hold = r.now + m.minHold
	}
	if m.past {
		n.ptok, n.pexp, n.psub = t.tok, t.exp, t.sub
	}
	m.retire(&n, n.exp, r.kind == slow && b.slowRetiresByExpiry)
	return n, true
}

func (m *model) renew(t item, r request) (item, bool) {
	b := m.bugs
	named := (t.lid == r.lid || b.renewIgnoresID) && (t.tok == r.tok || b.renewIgnoresToken)
	held := t.exists && t.lid != 0
	ok := held && named && t.exp > r.now && (t.exp < r.exp || b.renewShortens)
	switch {
	case b.renewWithoutParentheses:
		ok = held && (named || t.exp > r.now) && t.exp < r.exp
	case b.renewUpserts:
		ok = true
		t.exists, t.lid = true, r.lid
		t.tok = max(t.tok, r.tok)
	}
	if !ok {
		return t, false
	}
	t.exp, t.free, t.ttl = r.exp, r.exp+m.grace, r.ttl
	m.retire(&t, r.exp, b.renewRetiresByExpiry)
	return t, true
}

func (m *model) release(t item, r request) (item, bool) {
	b := m.bugs
	named := t.lid == r.lid && (t.tok == r.tok || b.releaseIgnoresToken)
	if !t.exists || t.lid == 0 || !(named || b.releaseIgnoresAll) {
		return t, false
	}
	if b.releaseDeletes {
		return item{}, true
	}
	t.lid, t.free = 0, t.hold
	if !b.releaseKeepsExpiry {
		t.exp = 0
	}
	if b.releaseDropsHold {
		t.free = 0
	}
	if b.releaseForgetsRequest {
		t.rid = 0
	}
	return t, true
}

func (m *model) breakLease(t item, r request, floor uint8) (item, bool) {
	b := m.bugs
	if !t.exists || t.lid == 0 || t.tok != r.tok && !b.breakIgnoresToken {
		return t, false
	}
	if b.breakIgnoresFloor {
		floor = 0
	}
	if !b.breakDoesNotCount {
		t.tok = next(t.tok, floor)
	}
	if !b.breakIgnoresClock {
		t.acq++
	}
	t.lid, t.exp, t.free, t.hold = 0, 0, 0, 0
	m.retire(&t, r.now, false)
	return t, true
}

// next is the token after old: it jumps over the floor.
func next(old, floor uint8) uint8 { return max(old, floor) + 1 }

// retire says when t may be forgotten.
func (m *model) retire(t *item, idle uint8, byExpiry bool) {
	if !m.storedRetirement {
		return
	}
	at := idle * m.units
	if !byExpiry {
		at = max(at, t.tok)
	}
	t.gc = at + m.retention*m.units
}
