package waiting

import "fmt"

// living reports whether caller j waits in the queue and will look in time.
func (m *model) living(s state, j int) bool {
	c := s.callers[j]
	if c.fate != there {
		return false
	}
	return c.phase == waiting && c.handler && s.t < c.end || c.phase == between
}

// passedOver checks that no living waiter stands before caller i, to which r is
// granted, in the item on which r was decided: a first attempt is decided by the
// store, a waiter's attempt by the look before it. A ticket that arrives between
// that look and the grant is seen by nobody in time.
func (m *model) passedOver(s *state, i int, r request) string {
	if !m.prompt {
		return ""
	}
	for j := range m.callers {
		stands := r.passes[j] || r.kind == first && s.item.q[j].end > 0
		if j != i && stands && m.living(*s, j) {
			return fmt.Sprintf("FIFO: %d, by its %v, passed %d", i+1, r.kind, j+1)
		}
	}
	return ""
}

// quarantined reports whether nothing is granted yet after a restore.
func (m *model) quarantined(s state) bool { return s.t < s.restored-1+m.quarantine }

// check looks at every state.
func (m *model) check(s state) string {
	if s.item.entries(-1) > m.places {
		return "BOUND: there are more tickets than places"
	}
	for j, k := range s.item.q {
		if s.restored > 0 && !m.quarantined(s) && s.callers[j].fate == dead && k.end+m.skew > s.t {
			return "LEFT: a ticket of before the restore stands in front of those who come now"
		}
	}
	if !m.prompt || s.freeSince == 0 {
		return ""
	}
	for i, c := range s.callers[:m.callers] {
		since := max(s.freeSince, c.end-m.wait+1)
		if c.phase == waiting && m.living(s, i) && s.t+1-since > m.longest() {
			return fmt.Sprintf("LIVE: the lock has been free for %d ticks, and %d waits", s.t+1-since, i+1)
		}
	}
	return ""
}

// longest is how long a free lock may take to be granted: who stands last moves up
// one place after the other, looks after a sleep, and is patient anew at each.
func (m *model) longest() uint8 {
	n := uint8(m.callers)
	return m.patience*n*(n-1)/2 + (m.sleep+1)*n + 2*m.skew
}
