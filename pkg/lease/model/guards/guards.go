// Package guards checks how storage can be guarded by a token: an old holder
// that does not know of its end, and the current holder, write, delete and create
// one object. Each may be paused between the steps of its guard.
//
//	FENCING  no write of the old holder is accepted after one of the current
//	LOCKOUT  no write of the current holder is refused because of the old one
//	READ     what the current holder has read after its claim, the old one does
//	         not change
//
// It says which guards can work. Whether one is built so is for the tests of the
// guards, on the real stores.
package guards

import "github.com/pawl-lock/pawl/pkg/lease/model/explore"

// holders are the old one, whose token is 1, and the current one, with token 2.
const holders = 2

const attempts = 3 // writes of each holder

// An object is what is guarded. Its version is what a conditional write compares.
type object struct {
	exists               bool
	token, body, version uint8
}

type holder struct {
	left    uint8 // writes
	writing bool  // it has looked, and is about to write
	deletes bool
	body    uint8

	// What it has seen.
	exists  bool
	version uint8
}

type state struct {
	object  object
	holders [holders]holder
	current bool // the current holder has been granted its lease
	claimed bool
	read    uint8 // 1 + the body that the current holder has read, or 0

	highest uint8 // ghost: the largest token that was accepted
}

// A config is one way to guard.
type config struct {
	deletes, reads, claims bool

	// planted bugs
	versionOfBody  bool // the version does not cover the token: it is in metadata, and S3's ETag is of the body
	forgets        bool // a delete leaves no tombstone
	checksThenActs bool // the write does not compare the version
	strict         bool // an equal token is refused
}

type model struct{ config }

// Initial implements [explore.Model].
func (model) Initial() state {
	return state{holders: [holders]holder{{left: attempts}, {left: attempts}}}
}

// Next implements [explore.Model].
func (m model) Next(s state, step explore.Step[state]) {
	if !s.current {
		n := s
		n.current = true
		step(n, "", "the current holder is granted its lease")
	}
	for i, h := range s.holders {
		switch {
		case i == 1 && !s.current:
		case h.writing:
			m.write(s, i, step)
		default:
			if h.left > 0 {
				m.look(s, i, step)
			}
			if i == 1 {
				m.begin(s, step)
			}
		}
	}
}

// look reads the object, and refuses a holder whose token is older.
func (m model) look(s state, i int, step explore.Step[state]) {
	token := uint8(i + 1)
	h := holder{left: s.holders[i].left - 1}
	refused := s.object.exists && (token < s.object.token || m.strict && token == s.object.token)
	if refused {
		broken := ""
		if i == 1 {
			broken = "LOCKOUT: a write of the current holder is refused"
		}
		s.holders[i] = h
		step(s, broken, "holder %d looks, and is refused", token)
		return
	}
	h.writing, h.exists, h.version = true, s.object.exists, s.object.version
	for body := range uint8(2) {
		h.body = body
		s.holders[i] = h
		step(s, "", "holder %d looks, to write %d", token, body)
	}
	if m.deletes {
		h.body, h.deletes = 0, true
		s.holders[i] = h
		step(s, "", "holder %d looks, to delete", token)
	}
}

// begin is what the current holder does before it writes: it claims, then reads.
func (m model) begin(s state, step explore.Step[state]) {
	if m.claims && !s.claimed {
		n := s
		n.claimed = true
		if o := &n.object; !o.exists || o.token <= 2 {
			o.exists, o.token = true, 2
			o.version = m.version(*o)
			n.highest = 2
		}
		step(n, "", "the current holder claims")
	}
	if m.reads && s.read == 0 && (s.claimed || !m.claims) {
		n := s
		n.read = 1 + s.object.body
		step(n, "", "the current holder reads %d", s.object.body)
	}
}

// write is the conditional write, on the version that was seen.
func (m model) write(s state, i int, step explore.Step[state]) {
	token, h := uint8(i+1), s.holders[i]
	same := s.object.exists == h.exists && (!h.exists || s.object.version == h.version)
	s.holders[i] = holder{left: h.left}
	if !same && !m.checksThenActs {
		step(s, "", "the write of holder %d finds another version", token)
		return
	}
	broken := ""
	switch {
	case token < s.highest:
		broken = "FENCING: a write of the old holder is accepted after one of the current"
	case i == 0 && s.read > 0 && s.object.body != h.body:
		broken = "READ: the old holder changes what the current one has read"
	}
	s.highest = max(s.highest, token)
	if i == 1 {
		s.read = 0 // it knows what it writes
	}
	s.object = object{exists: true, token: token, body: h.body}
	s.object.version = m.version(s.object)
	if h.deletes && m.forgets {
		s.object = object{}
	}
	step(s, broken, "the write of holder %d is accepted", token)
}

func (m model) version(o object) uint8 {
	if m.versionOfBody {
		return 1 + o.body
	}
	return 1 + o.body + 10*o.token
}
