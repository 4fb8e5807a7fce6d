package grants

// A config bounds a model. Times are in ticks.
type config struct {
	clients    int
	units      uint8 // of the counter in one tick: with 8, a tick is like a second; with 1, a millisecond
	until      uint8 // the last tick
	skew       uint8 // what a host reads is up to so much off the true time
	ttl        uint8
	grace      uint8 // skew allowance and lock delay, from expiry to the next grant
	margin     uint8 // by which a client stops earlier
	minHold    uint8
	retention  uint8
	requestIDs uint8 // of each client, one after the other
	retries    uint8 // with the same request id
	renewals   uint8 // of each lease
	copies     uint8 // how often a request may be carried out
	inFlight   int   // requests at a time
	life       uint8 // a signed request is refused so long after; 0 for never
	ahead      uint8 // by how much the first request's host may be ahead, beyond the skew

	past        bool // ptok, pexp and pown are kept, and releases are answered
	lateAnswers bool // answers may arrive at the client later
	guesses     bool // a client may use the request id of another
	guarded     bool // every grant ever made may write to guarded storage
	breaks      bool // one break

	// The item is deleted when its time has come: by the stored attribute, or as
	// early as any host could.
	retires, storedRetirement bool

	restores bool  // one restore, from a backup taken at any time
	laterTTL uint8 // the maximum TTL, which all requests use, from some time after the restore on; 0 for no change

	unbounded bool // the skew is beyond its bound: EXCLUSION and BELIEF are not promised
	drifts    bool // DRIFT is not promised
	bugs      bugs
}

// bugs are planted: each leaves out a clause, or does what looks as well.
type bugs struct {
	fastIgnoresClock, fastIgnoresFloor, fastIgnoresFree, fastWithoutParentheses   bool
	slowClockIsNow, slowClockIsMax, slowWithoutCompare, slowDoesNotJump           bool
	slowRetiresByExpiry, noSlowPath, readsThenWrites                              bool
	startsAtZero, spentIgnored, anyPrincipal                                      bool
	renewIgnoresID, renewIgnoresToken, renewShortens, renewUpserts                bool
	renewWithoutParentheses, renewIgnoresFloor, renewRetiresByExpiry              bool
	releaseIgnoresToken, releaseIgnoresAll, releaseDeletes, releaseKeepsExpiry    bool
	releaseDropsHold, releaseForgetsRequest, releasedHoweverItEnded, noSecondRule bool
	breakIgnoresToken, breakIgnoresFloor, breakIgnoresClock, breakDoesNotCount    bool
	breaksInQuarantine                                                            bool
	grantIgnoresFloor, floorAtRestore, floorFromLimits                            bool
	noQuarantine, shortQuarantine, quarantineFromLimits                           bool
	retiresInUse, retiresAboveClock                                               bool
	leaseIDPerClient, deadlineFromReceipt, fullTTLForRepeat, remainingNotCapped   bool
	trustsAfterRelease, assumesRenewed                                            bool
	guardDoesNotStore, guardBackwards, guardStrict                                bool
}

// A model is a [config] that can be searched.
type model struct {
	config

	// evaluated, if set, is told of every evaluation of a request.
	evaluated func(before item, r request, floor uint8, after item, ok bool)
}

const (
	mostClients = 3
	mostFlying  = 4
	mostGrants  = 7 // a bit of a byte each
)

type phase uint8

const (
	idle phase = iota
	asking
	holding
)

// An answer is what the service told a client, on its way.
type answer struct {
	valid, granted bool
	rid, sub       uint8 // of the grant
	tok, lid       uint8
	sent           uint8 // when the client had asked
	remaining      uint8
	grant          uint8 // ghost
}

type client struct {
	phase           phase
	asked           uint8 // request ids used up
	rid, sent       uint8
	retries         uint8
	tok, lid, grant uint8
	deadline        uint8 // until when it trusts its lease
	renewals        uint8
	acquired        answer
	renewed         answer
}

type state struct {
	t       uint8
	item    item
	clients [mostClients]client
	flying  [mostFlying]request

	backup     item
	backed     bool
	restored   bool
	restoredAt uint8 // by the clock of whoever read it
	limits     uint8 // the maximum TTL now
	open       bool  // ghost: some host has seen the quarantine end

	// ghosts
	grants, maxTok       uint8
	before               uint8 // grants before the restore
	broke                bool
	broken, released     uint8 // bits of grants that were
	tokens               [mostGrants]uint8
	guardTok, guardGrant uint8
}

// Initial implements [explore.Model].
func (m *model) Initial() state { return state{t: m.skew + 1, limits: m.ttl} }

// clocks are what a host can read at the true time t.
func (m *model) clocks(t uint8) []uint8 {
	var c []uint8
	for d := -int(m.skew); d <= int(m.skew); d++ {
		c = append(c, uint8(int(t)+d))
	}
	return c
}

// sinceRestore is from a restore to its floor: more than two hosts' clocks can be
// apart, whatever the limits.
func (m *model) sinceRestore() uint8 { return 2*m.skew + 1 }

// floor is the number, in units, that no valid token is below.
func (m *model) floor(s state) uint8 {
	b := m.bugs
	switch {
	case !s.restored:
		return 0
	case b.floorAtRestore:
		return s.restoredAt * m.units
	case b.floorFromLimits:
		return (s.restoredAt + s.limits + m.grace) * m.units
	}
	return (s.restoredAt + m.sinceRestore()) * m.units
}

// quarantineEnd is when grants and breaks begin again. It is computed once, from
// the limits of the old table.
func (m *model) quarantineEnd(s state) uint8 {
	b := m.bugs
	limits := m.ttl
	if b.quarantineFromLimits {
		limits = s.limits
	}
	switch end := s.restoredAt + max(m.sinceRestore(), limits+m.grace); {
	case !s.restored || b.noQuarantine:
		return 0
	case b.shortQuarantine:
		return end - 1
	default:
		return end
	}
}
