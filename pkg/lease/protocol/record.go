package protocol

import (
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Record is what the store keeps of one lock. The zero value is a lock of
// which nothing is recorded.
//
// Its methods are the protocol: each returns the record after one transition,
// or the reason why there is none. A record that is returned unchanged, without
// an error, says that the transition had been made before.
type Record struct {
	Token fence.Token // of the last grant or break

	// Clock orders grants. It is strictly larger after every grant and break,
	// and usually the time of the last one; a host with a slow clock counts it
	// up by one instead.
	Clock Instant

	LeaseID   string // of the lease that holds the lock, or empty
	RequestID string // of the last grant; stays after its end, so that a late repeat is known
	Holder    string
	Principal string
	Metadata  string
	Since     Instant // the last grant, for display

	Expires Instant // end of the lease that holds the lock, or 0
	Free    Instant // the earliest next grant
	Hold    Instant // end of the minimum hold, or 0
	TTL     time.Duration
	Delay   time.Duration // from Expires to Free: skew and lock delay

	// The lease that the last grant replaced. PrevExpires is 0 unless it had
	// run out.
	PrevToken   fence.Token
	PrevExpires Instant
	PrevHolder  string

	Markers Markers // the requests that were withdrawn lately

	Retire int64 // when an idle lock may be forgotten, in epoch seconds
}

// HeldAt reports whether a lease holds the lock at now.
func (r Record) HeldAt(now Instant) bool { return r.LeaseID != "" && r.Expires > now }

// Available returns a [lease.HeldError] unless the lock can be granted at now.
func (r Record) Available(now Instant) error {
	if r.Free <= now {
		return nil
	}
	return &lease.HeldError{Holder: r.Holder, Token: r.Token, Remaining: r.Free.Sub(now)}
}

// Awaited is what a waiter for the grant g makes of a look at now: nil to acquire,
// or why not to.
func (r Record) Awaited(now Instant, g Grant) error {
	switch {
	case r.RequestID == g.RequestID:
		return nil // granted to another call with the same id: acquire knows it
	case r.Markers.Until(g.Mark()) != 0:
		return lease.ErrRequestSpent
	}
	return r.Available(now)
}

// A Grant is an acquire as it will be recorded; see [Rules.Grant].
type Grant struct {
	LeaseID, RequestID, Holder, Principal, Metadata string

	TTL, MinHold time.Duration
	Delay        time.Duration // skew and lock delay
}

// Acquire returns the record after the grant g at now. It returns r itself when
// g is the grant that holds the lock.
func (r Record) Acquire(now Instant, g Grant, rules Rules) (Record, error) {
	floor := rules.Floor()
	if err := quarantined(now, rules); err != nil {
		return r, err
	}
	if r.RequestID == g.RequestID {
		switch {
		case r.Principal != g.Principal || r.Holder != g.Holder:
			return r, lease.ErrRequestConflict
		case r.HeldAt(now) && Instant(r.Token) >= floor:
			return r, nil
		}
		return r, lease.ErrRequestSpent
	}
	if r.Markers.Until(g.Mark()) != 0 {
		return r, lease.ErrRequestSpent
	}
	if err := r.Available(now); err != nil {
		return r, err
	}
	next := Record{
		Token:       r.nextToken(now, floor),
		Clock:       max(r.Clock+1, now),
		LeaseID:     g.LeaseID,
		RequestID:   g.RequestID,
		Holder:      g.Holder,
		Principal:   g.Principal,
		Metadata:    g.Metadata,
		Since:       now,
		Expires:     now.Add(g.TTL),
		Free:        now.Add(g.TTL + g.Delay),
		TTL:         g.TTL,
		Delay:       g.Delay,
		PrevToken:   r.Token,
		PrevExpires: r.Expires,
		PrevHolder:  r.Holder,
		Markers:     r.Markers,
	}
	if g.MinHold > 0 {
		next.Hold = now.Add(g.MinHold)
	}
	next.retire(next.Expires, rules)
	return next, checkToken(next.Token)
}

// Renew returns the record after the lease that q names lives to its TTL from
// now on. It returns r itself when the lease lives that long already.
func (r Record) Renew(now Instant, q lease.RenewRequest, rules Rules) (Record, error) {
	// A holder goes on asking for the TTL of its grant when a deployment has
	// lowered the limit: its lease lives, for less.
	q.TTL = min(q.TTL, rules.maxTTL())
	switch {
	case Instant(q.Token) < rules.Floor(): // the backup may have forgotten that it was broken
		return r, new(lease.LostError)
	case r.LeaseID != q.LeaseID || r.Token != q.Token:
		return r, r.lost(q.Token)
	case r.Expires <= now:
		return r, lease.ErrExpired
	case r.Expires >= now.Add(q.TTL):
		return r, nil
	}
	r.Expires = now.Add(q.TTL)
	r.Free = r.Expires.Add(r.Delay)
	r.TTL = q.TTL
	r.retire(r.Expires, rules)
	return r, nil
}

// Release returns the record after the lease that q names is given up. The
// token stays: forgetting it would let the next grant repeat a number that
// storage has already accepted.
func (r Record) Release(q lease.ReleaseRequest) (Record, error) {
	switch {
	case r.LeaseID == "" && r.Token == q.Token:
		return r, nil
	case r.PrevToken == q.Token && r.PrevExpires == 0:
		// The grant that replaced this lease found it released.
		return r, nil
	case r.LeaseID != q.LeaseID || r.Token != q.Token:
		return r, r.lost(q.Token)
	}
	return r.released(), nil
}

// released returns r after whatever lease there is of it is given up.
func (r Record) released() Record {
	if r.LeaseID != "" {
		r.LeaseID, r.Expires, r.Free = "", 0, r.Hold
	}
	return r
}

// TakenBack returns the record after the grant that r is, and that nobody was told
// of, is taken back: nobody has to wait for a minimum hold that nobody needs, and
// if r took over a lease that ran out, the next holder learns of it.
func (r Record) TakenBack() Record {
	r.Free, r.Hold = 0, 0
	if r.PrevExpires > 0 {
		r.Expires, r.Holder = r.PrevExpires, r.PrevHolder
		return r
	}
	r.LeaseID, r.Expires = "", 0
	return r
}

// takenBack reports whether r is such a record, with the lease before it in it: a
// grant runs out later than the one that it takes over did.
func (r Record) takenBack() bool { return r.LeaseID != "" && r.Expires == r.PrevExpires }

// lost is the error for a lease that does not hold the lock. There was one if
// the lock has come to its token, unless the one with this token has another id.
// The first token of a lock is read from the clock: a small one is made up.
func (r Record) lost(t fence.Token) error {
	other := r.Token == t && r.LeaseID != ""
	return &lease.LostError{Known: Instant(t) > At(earliest) && t <= r.Token && !other}
}

// Break returns the record after the lease with the token observed is ended and
// a token is used up. It returns r itself when nobody holds the lock.
func (r Record) Break(now Instant, observed fence.Token, rules Rules) (Record, error) {
	floor := rules.Floor()
	if err := quarantined(now, rules); err != nil {
		return r, err
	}
	switch {
	case r.LeaseID == "":
		return r, nil
	case r.Token != observed:
		return r, &lease.TokenChangedError{Token: r.Token}
	}
	r.Token = r.nextToken(now, floor)
	r.Clock++
	r.LeaseID, r.Expires, r.Free, r.Hold = "", 0, 0, 0
	r.retire(now, rules)
	return r, checkToken(r.Token)
}

// nextToken counts by one while the lock is recorded. It starts at the clock,
// which retention has put above every token that a forgotten record of the same
// lock can have had, and jumps over the floor of a restore.
func (r Record) nextToken(now, floor Instant) fence.Token {
	if r.Token == 0 {
		return fence.Token(now) + 1
	}
	return max(r.Token, fence.Token(floor)) + 1
}

// retire lets r be forgotten only when the clock, and with it the first token of
// a new record, has passed its token.
func (r *Record) retire(idle Instant, rules Rules) {
	r.Retire = max(idle, Instant(r.Token)).Add(rules.retention()).Seconds()
}

func quarantined(now Instant, rules Rules) error {
	end := At(rules.QuarantineEnd)
	if now >= end {
		return nil
	}
	return &lease.RetryError{Err: lease.ErrQuarantine, After: end.Sub(now)}
}
