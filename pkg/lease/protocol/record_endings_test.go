package protocol_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// their is held after it ran out and was taken over, and next after it was
// released and granted again.
var (
	their = taken(held, held.Free, func(r *protocol.Record) { r.PrevExpires = held.Expires })
	next  = taken(released, noon+second, unchanged)
)

func TestRenew(t *testing.T) {
	var none protocol.Record
	mine := lease.RenewRequest{LeaseID: "lease-1", Token: held.Token, TTL: time.Minute}
	renew := func(now protocol.Instant, rules protocol.Rules, changes func(*lease.RenewRequest)) func(protocol.Record) (protocol.Record, error) {
		q := mine
		changes(&q)
		return func(r protocol.Record) (protocol.Record, error) { return r.Renew(now, q, rules) }
	}
	same := func(*lease.RenewRequest) {}
	ttl := func(d time.Duration) func(*lease.RenewRequest) { return func(q *lease.RenewRequest) { q.TTL = d } }
	later := func(r *protocol.Record) {
		r.Expires, r.Free, r.Retire = noon+20*second+minute, noon+21*second+minute, int64(noon+20*second+minute+7*day)/1000
	}
	delayed := change(protected, func(r *protocol.Record) { r.Delay, r.Free = 31*time.Second, r.Expires+31*second })
	atFloor := change(held, func(r *protocol.Record) { r.Token = fence.Token(floor) })
	check(t, []transition{
		{"the lease lives for the TTL from now on, all else stays", held, renew(noon+20*second, protocol.Rules{}, same), change(held, later), nil},
		{"the lock delay and the minimum hold stay", delayed, renew(noon+20*second, protocol.Rules{}, same),
			change(delayed, func(r *protocol.Record) { later(r); r.Free = r.Expires + 31*second }), nil},
		{"the TTL may grow", held, renew(noon, protocol.Rules{}, ttl(2*time.Minute)), change(held, func(r *protocol.Record) {
			r.TTL, r.Expires, r.Free, r.Retire = 2*time.Minute, noon+2*minute, noon+2*minute+second, int64(noon+2*minute+7*day)/1000
		}), nil},
		{"in the last millisecond it is not too late", held, renew(held.Expires-ms, protocol.Rules{}, same), change(held, func(r *protocol.Record) {
			r.Expires, r.Free, r.Retire = noon+2*minute-ms, noon+2*minute+second-ms, int64(noon+2*minute+7*day)/1000
		}), nil},
		{"retirement waits until the clock has passed the token", change(held, func(r *protocol.Record) { r.Token += fence.Token(day) }),
			renew(noon+20*second, protocol.Rules{}, func(q *lease.RenewRequest) { q.Token += fence.Token(day) }),
			change(held, func(r *protocol.Record) {
				later(r)
				r.Token += fence.Token(day)
				r.Retire = (int64(r.Token) + int64(7*day) + 999) / 1000
			}), nil},
		{"a late duplicate does not shorten the lease", held, renew(noon-second, protocol.Rules{}, same), held, nil},
		{"a shorter TTL does not shorten it", held, renew(noon, protocol.Rules{}, ttl(time.Second)), held, nil},
		{"renewed to the millisecond it is as it was", held, renew(noon, protocol.Rules{}, same), held, nil},
		{"even by a shorter TTL", held, renew(noon+20*second, protocol.Rules{}, ttl(40*time.Second)), held, nil},
		{"a lease that ran out has expired", held, renew(held.Expires, protocol.Rules{}, same), none, lease.ErrExpired},
		{"what has expired is lost", held, renew(held.Expires, protocol.Rules{}, same), none, lease.ErrLost},
		{"a lease that was taken over is lost", their, renew(held.Free, protocol.Rules{}, same), none, lease.ErrLost},
		{"a lease that was released is lost", released, renew(noon, protocol.Rules{}, same), none, lease.ErrLost},
		{"a lease that was broken is lost", broken, renew(noon, protocol.Rules{}, same), none, lease.ErrLost},
		{"of a lock that was forgotten nothing is held", none, renew(noon, protocol.Rules{}, same), none, lease.ErrLost},
		{"another lease id names nothing", held, renew(noon+second, protocol.Rules{}, func(q *lease.RenewRequest) { q.LeaseID = "lease-2" }), none, lease.ErrLost},
		{"the lease id of an earlier grant, used again, names nothing", held,
			renew(noon+second, protocol.Rules{}, func(q *lease.RenewRequest) { q.Token-- }), none, lease.ErrLost},
		{"below the floor a lease is lost: the backup may have forgotten that it was broken", held, renew(noon, restored, same), none, lease.ErrLost},
		{"at the floor it is not", atFloor, renew(noon+20*second, restored, func(q *lease.RenewRequest) { q.Token = fence.Token(floor) }),
			change(atFloor, func(r *protocol.Record) { later(r); r.Retire = (int64(floor+7*day) + 999) / 1000 }), nil},
	})
	for _, r := range []protocol.Record{their, released, broken, none} {
		if _, err := r.Renew(held.Free, mine, protocol.Rules{}); errors.Is(err, lease.ErrExpired) {
			t.Errorf("a lease that ended in another way is called expired: %+v", r)
		}
	}
}

func TestRelease(t *testing.T) {
	var none protocol.Record
	release := func(id string, token fence.Token) func(protocol.Record) (protocol.Record, error) {
		return func(r protocol.Record) (protocol.Record, error) {
			return r.Release(lease.ReleaseRequest{LeaseID: id, Token: token})
		}
	}
	afterBreak := taken(broken, noon+minute, unchanged)
	check(t, []transition{
		{"a released lock is free at once, and all else stays", held, release("lease-1", held.Token), released, nil},
		{"or when its minimum hold ends", protected, release("lease-1", held.Token),
			change(released, func(r *protocol.Record) { r.Hold, r.Free = noon+10*second, noon+10*second }), nil},
		{"late, when nobody took over, it ends the lock delay", change(held, func(r *protocol.Record) { r.Free += minute }),
			release("lease-1", held.Token), released, nil},
		{"again it changes nothing", released, release("lease-1", held.Token), released, nil},
		{"again after the next grant it changes nothing", next, release("lease-1", held.Token), next, nil},
		{"after a takeover the lease is lost", their, release("lease-1", held.Token), none, lease.ErrLost},
		{"after a break the lease is lost", broken, release("lease-1", held.Token), none, lease.ErrLost},
		{"after a break and the next grant it is lost still", afterBreak, release("lease-1", held.Token), none, lease.ErrLost},
		{"another lease id names nothing", held, release("lease-2", held.Token), none, lease.ErrLost},
		{"the lease id of an earlier grant, used again, names nothing", held, release("lease-1", held.Token-1), none, lease.ErrLost},
		{"of a lock that was forgotten nothing is held", none, release("lease-1", held.Token), none, lease.ErrLost},
	})
}

func TestAReleaseTellsHowItFoundItsLeaseAndNamesNoSuccessor(t *testing.T) {
	q := lease.ReleaseRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, LeaseID: "lease-1", Token: held.Token}
	for _, c := range []struct {
		name   string
		before protocol.Record
		now    protocol.Instant
		want   lease.Ending
		held   bool
	}{
		{"a lease that holds the lock", held, held.Expires - ms, lease.Released, false},
		{"one that ran out", held, held.Expires, lease.ReleasedLate, false},
		{"one that ran out long ago", held, held.Free + day, lease.ReleasedLate, false},
		{"one that was released", released, noon + second, lease.ReleasedBefore, false},
		{"one that was released, of a lock that another holds", next, noon + second, lease.ReleasedBefore, true},
	} {
		got, err := c.before.Released(c.now, q)
		if err != nil || got.Ended != c.want || got.Holder != "worker-1" || got.Held != c.held || got.Name != q.Name {
			t.Errorf("%s: got %#v, %v", c.name, got, err)
		}
		if after, _ := c.before.Release(q); got.Token != after.Token {
			t.Errorf("%s: got token %d, want %d", c.name, got.Token, after.Token)
		}
	}
	if got, err := their.Released(noon, q); !errors.Is(err, lease.ErrLost) || got != (lease.State{}) {
		t.Errorf("of a lost lease: got %#v, %v", got, err)
	}
	if s := held.State(q.Name, noon); s.Ended != 0 {
		t.Errorf("a state without a release tells of one: %#v", s)
	}
}

// Who counts holders that came back late must not count what was made up.
func TestALostLeaseIsKnownOnlyByItsRecord(t *testing.T) {
	recreated := change(next, func(r *protocol.Record) { r.Token += fence.Token(30 * day); r.PrevToken = 0 })
	for _, c := range []struct {
		name   string
		record protocol.Record
		id     string
		token  fence.Token
		known  bool
	}{
		{"taken over", their, "lease-1", held.Token, true},
		{"broken", broken, "lease-1", held.Token, true},
		{"forgotten, and granted again", recreated, "lease-1", held.Token, true},
		{"of a lock that never existed", protocol.Record{}, "lease-1", held.Token, false},
		{"a token that has not been granted", held, "lease-9", held.Token + 1, false},
		{"a token below every clock", held, "lease-9", 5, false},
		{"another id than the one with this token", held, "lease-9", held.Token, false},
	} {
		_, renew := c.record.Renew(noon, lease.RenewRequest{LeaseID: c.id, Token: c.token, TTL: time.Minute}, protocol.Rules{})
		_, release := c.record.Release(lease.ReleaseRequest{LeaseID: c.id, Token: c.token})
		for call, err := range map[string]error{"renew": renew, "release": release} {
			if !errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrExpired) || lease.KnownLost(err) != c.known {
				t.Errorf("%s: %s: got %v, known %t, want %t", c.name, call, err, lease.KnownLost(err), c.known)
			}
		}
	}
	for err, want := range map[error]bool{lease.ErrExpired: true, lease.ErrLost: false, lease.ErrHeld: false, nil: false} {
		if got := lease.KnownLost(err); got != want {
			t.Errorf("%v: got %t", err, got)
		}
	}
	if _, err := their.Renew(noon, lease.RenewRequest{LeaseID: "lease-1", Token: held.Token, TTL: time.Minute}, restored); lease.KnownLost(err) {
		t.Error("of what a restore has forgotten nothing is known")
	}
}

func TestBreak(t *testing.T) {
	var none protocol.Record
	breaks := func(now protocol.Instant, observed fence.Token, rules protocol.Rules) func(protocol.Record) (protocol.Record, error) {
		return func(r protocol.Record) (protocol.Record, error) { return r.Break(now, observed, rules) }
	}
	check(t, []transition{
		{"the lock is free at once and a token is used up", held, breaks(noon+second, held.Token, protocol.Rules{}), broken, nil},
		{"a minimum hold and a lock delay end too", change(protected, func(r *protocol.Record) { r.Free += minute }),
			breaks(noon+second, held.Token, protocol.Rules{}), broken, nil},
		{"a lease that ran out, and that nobody took over, can be broken", held, breaks(noon+day, held.Token, protocol.Rules{}),
			change(broken, func(r *protocol.Record) { r.Retire = int64(noon+8*day) / 1000 }), nil},
		{"retirement waits until the clock has passed the token", held, breaks(noon-hour, held.Token, protocol.Rules{}),
			change(broken, func(r *protocol.Record) { r.Retire = (int64(broken.Token) + int64(7*day) + 999) / 1000 }), nil},
		{"again it changes nothing", broken, breaks(noon+2*second, held.Token, protocol.Rules{}), broken, nil},
		{"a released lock is free already", released, breaks(noon+second, held.Token, protocol.Rules{}), released, nil},
		{"whatever the token", released, breaks(noon+second, 1, protocol.Rules{}), released, nil},
		{"a lock of which nothing is recorded is free already", none, breaks(noon, 1, protocol.Rules{}), none, nil},
		{"a newer lease is not hit", next, breaks(noon+2*second, held.Token, protocol.Rules{}), none, lease.ErrTokenChanged},
		{"nothing is broken in the quarantine", held, breaks(quarantineEnd-ms, held.Token, restored), none, lease.ErrQuarantine},
		{"the token jumps above the floor", held, breaks(quarantineEnd, held.Token, restored), change(broken, func(r *protocol.Record) {
			r.Token, r.Retire = fence.Token(floor)+1, (int64(quarantineEnd+7*day)+999)/1000
		}), nil},
	})
	_, err := next.Break(noon+2*second, held.Token, protocol.Rules{})
	var detail *lease.TokenChangedError
	if !errors.As(err, &detail) || detail.Token != next.Token {
		t.Errorf("got %v, want the token %d", err, next.Token)
	}
}
