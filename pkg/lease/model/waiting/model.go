package waiting

// A config bounds a model. Times are in ticks.
type config struct {
	callers    int
	until      uint8 // the last tick
	skew       uint8 // each host's clock is up to so much off the true time
	ttl, delay uint8
	minHold    uint8
	retention  uint8
	wait       uint8 // how long a call waits
	sleep      uint8 // a living waiter looks at least once in so many ticks
	patience   uint8 // for each ticket in front
	places     uint8
	marker     uint8 // for how long a marker is kept at least
	life       uint8 // a request is carried out at most so long after it was sent; 0 for ever
	calls      uint8 // of one request id; all but the last keep their place
	gap        uint8 // between two of them, at most

	twice      bool // a request may be carried out once more, later
	deaths     bool // a handler may die
	cancels    bool // a caller may release by request id
	prompt     bool // requests take less than a tick, and living waiters look in time
	breaks     bool // the lease may be broken, once
	retires    bool // the item is deleted when its time has come
	restore    bool // the table may be restored once, from a backup taken at any time
	quarantine uint8

	start func(*state) // what there is before the first step; nil for nothing

	bugs bugs
}

// bugs are planted: each leaves out one clause of the protocol, or one of its
// numbers is too small.
type bugs struct {
	markersIgnored, firstIgnoresMarker, tryIgnoresMarker                           bool
	cancelBlind, ticketRemovesMarker, markerRetires                                bool
	firstBarges, noPatience, flatPatience, countsOn                                bool
	replacesBlindly, releaseDropsHold, firstIgnoresFree, startsAtZero              bool
	freeByOneClock, endsWithCall, newArrival, noLastLook, frozenGoesOn, startsOver bool
}

// A model is a [config] that can be searched.
type model struct{ config }

// phases of a caller
type phase uint8

const (
	idle    phase = iota
	asked         // the first attempt is under way
	refused       // about to take a ticket
	waiting
	between // two calls of one wait
	holds
	done
	gone // told a refusal, or dead
)

// fates of a caller that wants to release by request id
type fate uint8

const (
	there fate = iota
	cancelling
	answered
	dead
)

// A caller is one client, and the handler that works on its call.
type caller struct {
	phase   phase
	handler bool
	fate    fate
	calls   uint8
	ahead   uint8 // of its host's clock, before the true time if less than the skew
	looked  uint8 // 1 + the tick of its last look
	seenTok uint8
	seenAt  uint8 // 1 + the tick since when it has seen the lock free, under seenTok and at place
	place   uint8
	tok     uint8
	end     uint8 // of its call, or since when it is between two
	arrival uint8 // by its host's clock
	sent    request
	late    request // a copy that is carried out later
}

type state struct {
	t         uint8
	item      item
	callers   [most]caller
	cancelled [most]bool
	maxTok    uint8
	freeSince uint8 // ghost: 1 + since when the lock is free by every clock, under one token
	broke     bool
	backup    item
	backed    bool
	restored  uint8 // 1 + when
}

// Initial implements [explore.Model].
func (m *model) Initial() state {
	s := state{t: m.skew + 1}
	if m.start != nil {
		m.start(&s)
	}
	return s
}

// clock is what the host of caller c reads at t.
func (m *model) clock(c caller, t uint8) uint8 { return t + c.ahead - m.skew }
