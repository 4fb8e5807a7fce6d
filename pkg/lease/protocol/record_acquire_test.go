package protocol_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// mine is the grant that holds the lock in held, asked for again: every call has
// a lease id of its own.
var mine = protocol.Grant{
	LeaseID: "lease-1b", RequestID: "request-1", Holder: "worker-1", Principal: "role-1", Metadata: "job 1",
	TTL: time.Minute, Delay: time.Second,
}

var theirs = protocol.Grant{
	LeaseID: "lease-2", RequestID: "request-2", Holder: "worker-2", Principal: "role-2", Metadata: "job 2",
	TTL: 10 * time.Second, Delay: time.Second,
}

func acquire(now protocol.Instant, g protocol.Grant, rules protocol.Rules) func(protocol.Record) (protocol.Record, error) {
	return func(r protocol.Record) (protocol.Record, error) { return r.Acquire(now, g, rules) }
}

func with(g protocol.Grant, changes func(*protocol.Grant)) protocol.Grant {
	changes(&g)
	return g
}

// taken is the record after theirs is granted at now on top of before, except
// for the token and the clock, which count on, and for what the cases say.
func taken(before protocol.Record, now protocol.Instant, changes func(*protocol.Record)) protocol.Record {
	return change(protocol.Record{
		Token: before.Token + 1, Clock: now,
		LeaseID: "lease-2", RequestID: "request-2", Holder: "worker-2", Principal: "role-2", Metadata: "job 2",
		Since: now, Expires: now + 10*second, Free: now + 11*second, TTL: 10 * time.Second, Delay: time.Second,
		PrevToken: before.Token, PrevHolder: before.Holder,
		Retire: int64(now+10*second+7*day+999) / 1000,
	}, changes)
}

func unchanged(*protocol.Record) {}

func TestAcquire(t *testing.T) {
	var none protocol.Record
	check(t, []transition{
		{"the first token of a lock comes from the clock", none, acquire(noon, theirs, protocol.Rules{}),
			taken(none, noon, func(r *protocol.Record) { r.Token = fence.Token(noon) + 1 }), nil},
		{"a released lock is granted with the next token", released, acquire(noon+5*second, theirs, protocol.Rules{}),
			taken(released, noon+5*second, unchanged), nil},
		{"a broken lock is granted with the token after the break's", broken, acquire(noon+5*second, theirs, protocol.Rules{}),
			taken(broken, noon+5*second, unchanged), nil},
		{"a held lock is refused", held, acquire(noon, theirs, protocol.Rules{}), none, lease.ErrHeld},
		{"a lease that has just run out is not taken over: another clock may be behind", held,
			acquire(held.Free-ms, theirs, protocol.Rules{}), none, lease.ErrHeld},
		{"a lease that ran out is taken over after the skew, and recorded", held, acquire(held.Free, theirs, protocol.Rules{}),
			taken(held, held.Free, func(r *protocol.Record) { r.PrevExpires = held.Expires }), nil},
		{"a lock delay keeps it from being taken over for longer",
			change(held, func(r *protocol.Record) { r.Free += minute; r.Delay += time.Minute }),
			acquire(held.Free+minute-ms, theirs, protocol.Rules{}), none, lease.ErrHeld},
		{"a lock delay is recorded with the skew", none,
			acquire(noon, with(theirs, func(g *protocol.Grant) { g.Delay = time.Minute + time.Second }), protocol.Rules{}),
			taken(none, noon, func(r *protocol.Record) {
				r.Token, r.Delay, r.Free = fence.Token(noon)+1, time.Minute+time.Second, noon+71*second
			}), nil},
		{"a minimum hold keeps a released lock", change(released, func(r *protocol.Record) { r.Hold, r.Free = noon+10*second, noon+10*second }),
			acquire(noon+10*second-ms, theirs, protocol.Rules{}), none, lease.ErrHeld},
		{"the next grant forgets the minimum hold", change(released, func(r *protocol.Record) { r.Hold, r.Free = noon+10*second, noon+10*second }),
			acquire(noon+10*second, theirs, protocol.Rules{}), taken(released, noon+10*second, unchanged), nil},
		{"a minimum hold counts from the grant", none,
			acquire(noon, with(theirs, func(g *protocol.Grant) { g.MinHold = 3 * time.Second }), protocol.Rules{}),
			taken(none, noon, func(r *protocol.Record) { r.Token, r.Hold = fence.Token(noon)+1, noon+3*second }), nil},
		{"a grant without metadata forgets those of the last", released,
			acquire(noon+second, with(theirs, func(g *protocol.Grant) { g.Metadata = "" }), protocol.Rules{}),
			taken(released, noon+second, func(r *protocol.Record) { r.Metadata = "" }), nil},
	})
}

func TestAcquireOnASlowClock(t *testing.T) {
	var none protocol.Record
	ahead := change(released, func(r *protocol.Record) { r.Clock = noon + day })
	check(t, []transition{
		{"in the millisecond of the last grant the clock is counted up", released, acquire(noon, theirs, protocol.Rules{}),
			taken(released, noon, func(r *protocol.Record) { r.Clock = noon + ms }), nil},
		{"a millisecond later it is read", released, acquire(noon+ms, theirs, protocol.Rules{}), taken(released, noon+ms, unchanged), nil},
		{"behind a host that was ahead it is counted up, and the lease lives by this host's clock", ahead, acquire(noon, theirs, protocol.Rules{}),
			taken(ahead, noon, func(r *protocol.Record) { r.Clock = noon + day + ms }), nil},
		{"retirement waits until the clock has passed the token", released, acquire(noon-hour, theirs, protocol.Rules{}),
			taken(released, noon-hour, func(r *protocol.Record) {
				r.Clock, r.Retire = noon+ms, (int64(released.Token)+1+int64(7*day)+999)/1000
			}), nil},
		{"retirement is rounded up to a second", none, acquire(noon+ms, theirs, protocol.Rules{Retention: 24 * time.Hour}),
			taken(none, noon+ms, func(r *protocol.Record) {
				r.Token, r.Retire = fence.Token(noon)+2, int64(noon+11*second+day)/1000
			}), nil},
	})
}

func TestAcquireAgain(t *testing.T) {
	var none protocol.Record
	next := taken(released, noon+5*second, func(r *protocol.Record) { r.LeaseID, r.Expires, r.Free = "", 0, 0 })
	conflict := func(changes func(*protocol.Grant)) func(protocol.Record) (protocol.Record, error) {
		return acquire(noon+second, with(mine, changes), protocol.Rules{})
	}
	check(t, []transition{
		{"while it holds the lock it is the same grant", held, acquire(noon+second, mine, protocol.Rules{}), held, nil},
		{"in its last millisecond too", held, acquire(held.Expires-ms, mine, protocol.Rules{}), held, nil},
		{"what it asks for in a repeat is ignored", held,
			acquire(noon, with(mine, func(g *protocol.Grant) { g.TTL, g.Metadata, g.MinHold = time.Hour, "other", time.Second }), protocol.Rules{}), held, nil},
		{"when it has run out it is spent, before anyone can take over", held, acquire(held.Expires, mine, protocol.Rules{}), none, lease.ErrRequestSpent},
		{"when anyone can take over it is spent still", held, acquire(held.Free+day, mine, protocol.Rules{}), none, lease.ErrRequestSpent},
		{"when it was released it is spent", released, acquire(noon+second, mine, protocol.Rules{}), none, lease.ErrRequestSpent},
		{"when it was broken it is spent", broken, acquire(noon+second, mine, protocol.Rules{}), none, lease.ErrRequestSpent},
		{"by another principal it is a conflict", held, conflict(func(g *protocol.Grant) { g.Principal = "role-2" }), none, lease.ErrRequestConflict},
		{"for another holder it is a conflict", held, conflict(func(g *protocol.Grant) { g.Holder = "worker-2" }), none, lease.ErrRequestConflict},
		{"a conflict comes before spent: strangers learn nothing", released, conflict(func(g *protocol.Grant) { g.Principal = "role-2" }), none, lease.ErrRequestConflict},
		{"after another grant it is a new request: a larger token and a lease of its own", next, acquire(noon+hour, mine, protocol.Rules{}),
			protocol.Record{
				Token: released.Token + 2, Clock: noon + hour,
				LeaseID: "lease-1b", RequestID: "request-1", Holder: "worker-1", Principal: "role-1", Metadata: "job 1",
				Since: noon + hour, Expires: noon + hour + minute, Free: noon + hour + minute + second, TTL: time.Minute, Delay: time.Second,
				PrevToken: released.Token + 1, PrevHolder: "worker-2", Retire: int64(noon+hour+minute+7*day) / 1000,
			}, nil},
	})
}

func TestAcquireAfterARestore(t *testing.T) {
	var none protocol.Record
	const end = quarantineEnd
	above := change(released, func(r *protocol.Record) { r.Token = fence.Token(floor) + 7; r.Clock = floor })
	live := change(held, func(r *protocol.Record) { r.Expires, r.Free = end+minute, end+minute+second })
	check(t, []transition{
		{"nothing is granted in the quarantine", released, acquire(end-ms, theirs, restored), none, lease.ErrQuarantine},
		{"not even a new lock", none, acquire(end-ms, theirs, restored), none, lease.ErrQuarantine},
		{"not even again", held, acquire(noon, mine, restored), none, lease.ErrQuarantine},
		{"the first grant jumps above the floor", released, acquire(end, theirs, restored),
			taken(released, end, func(r *protocol.Record) { r.Token = fence.Token(floor) + 1 }), nil},
		{"a new lock is above the floor by its clock", none, acquire(end, theirs, restored),
			taken(none, end, func(r *protocol.Record) { r.Token = fence.Token(end) + 1 }), nil},
		{"later grants count by one", above, acquire(end+second, theirs, restored), taken(above, end+second, unchanged), nil},
		{"a grant below the floor is not repeated: the backup may have forgotten that it was broken", live,
			acquire(end, mine, restored), none, lease.ErrRequestSpent},
		{"a grant at the floor is repeated", change(live, func(r *protocol.Record) { r.Token = fence.Token(floor) }),
			acquire(end, mine, restored), change(live, func(r *protocol.Record) { r.Token = fence.Token(floor) }), nil},
	})
}

// The settings of a deployment change long after a restore; what it has granted
// since is to live on.
func TestNoChangeOfTheLimitsAfterARestoreLosesALease(t *testing.T) {
	for _, limits := range []protocol.Rules{
		{MaxTTL: 24 * time.Hour}, {MaxTTL: time.Second}, {MaxLockDelay: time.Second}, {Skew: time.Minute},
		{MaxTTL: 24 * time.Hour, MaxLockDelay: time.Minute, Skew: time.Minute},
	} {
		limits.RestoredAt, limits.QuarantineEnd = restored.RestoredAt, restored.QuarantineEnd
		r, err := released.Acquire(quarantineEnd, theirs, restored)
		if err != nil {
			t.Fatal(err)
		}
		now := quarantineEnd + second
		if _, err := r.Renew(now, lease.RenewRequest{LeaseID: r.LeaseID, Token: r.Token, TTL: time.Minute}, limits); err != nil {
			t.Errorf("%+v: renew: %v", limits, err)
		}
		if again, err := r.Acquire(now, theirs, limits); err != nil || again != r {
			t.Errorf("%+v: a repeat: got %+v, %v", limits, again, err)
		}
		if _, err := broken.Acquire(now, theirs, limits); err != nil {
			t.Errorf("%+v: another lock: %v", limits, err)
		}
	}
}

func TestTheRefusalOfAHeldLockTellsWhoHoldsItAndForHowLong(t *testing.T) {
	_, err := held.Acquire(noon+20*second, theirs, protocol.Rules{})
	var detail *lease.HeldError
	if !errors.As(err, &detail) || *detail != (lease.HeldError{Holder: "worker-1", Token: held.Token, Remaining: 41 * time.Second}) {
		t.Errorf("got %+v", err)
	}
	if d := detail.RetryAfter(); d != time.Second {
		t.Errorf("retry after %v, want 1s: it may be released at any moment", d)
	}
}

func TestTheQuarantineTellsWhenItEnds(t *testing.T) {
	_, err := released.Acquire(quarantineEnd-minute, theirs, restored)
	var detail *lease.RetryError
	if !errors.As(err, &detail) || detail.After != time.Minute {
		t.Errorf("got %+v, want a RetryError after 1m", err)
	}
}

func TestTokensEndWhereGuardsStopReadingThem(t *testing.T) {
	for token, want := range map[fence.Token]error{fence.Max - 1: nil, fence.Max: lease.ErrMisconfigured} {
		r := change(released, func(r *protocol.Record) { r.Token = token })
		if _, err := r.Acquire(noon+second, theirs, protocol.Rules{}); !errors.Is(err, want) {
			t.Errorf("acquire after %d: got error %v, want %v", token, err, want)
		}
		r.LeaseID = "lease-1"
		if _, err := r.Break(noon, token, protocol.Rules{}); !errors.Is(err, want) {
			t.Errorf("break of %d: got error %v, want %v", token, err, want)
		}
	}
}
