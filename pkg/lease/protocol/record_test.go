package protocol_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// noon is the time in the tests of records. Their numbers must have the size of
// today's, because the first token of a lock is taken from the clock.
const noon protocol.Instant = 1_893_499_200_000

const (
	ms     protocol.Instant = 1
	second                  = 1000 * ms
	minute                  = 60 * second
	hour                    = 60 * minute
	day                     = 24 * hour
)

// held is a lock that worker-1 has been granted at noon, for a minute. It is
// written out rather than acquired, so that a mistake in Acquire does not
// become what the other tests expect.
var held = protocol.Record{
	Token:     fence.Token(noon) + 1,
	Clock:     noon,
	LeaseID:   "lease-1",
	RequestID: "request-1",
	Holder:    "worker-1",
	Principal: "role-1",
	Metadata:  "job 1",
	Since:     noon,
	Expires:   noon + minute,
	Free:      noon + minute + second,
	TTL:       time.Minute,
	Delay:     time.Second,
	Retire:    int64(noon+minute+7*day) / 1000,
}

// change returns r with changes.
func change(r protocol.Record, changes func(*protocol.Record)) protocol.Record {
	changes(&r)
	return r
}

var (
	released = change(held, func(r *protocol.Record) { r.LeaseID, r.Expires, r.Free = "", 0, 0 })
	broken   = change(released, func(r *protocol.Record) {
		r.Token++
		r.Clock++
		r.Retire = int64(noon+second+7*day) / 1000
	})
	protected = change(held, func(r *protocol.Record) { r.Hold = noon + 10*second })
)

// restored are the rules after a restore at noon. The quarantine is as long as
// the longest TTL, the longest lock delay and the skew; the floor is nearer, and
// depends on none of them.
var restored = protocol.Rules{RestoredAt: noon.Time(), QuarantineEnd: quarantineEnd.Time()}

const (
	floor         = noon + 3*minute
	quarantineEnd = noon + hour + minute + second
)

// A transition is one case of a change of a record.
type transition struct {
	name   string
	before protocol.Record
	do     func(protocol.Record) (protocol.Record, error)
	want   protocol.Record // unless there is an error
	err    error
}

// check runs the cases. Where one returns the record unchanged, that says that
// the transition had been made before.
func check(t *testing.T, cases []transition) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.do(c.before)
			if !errors.Is(err, c.err) {
				t.Fatalf("got error %v, want %v", err, c.err)
			}
			if err == nil && got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestRemainingTimeIsNeverMoreThanWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		now  protocol.Instant
		ttl  time.Duration
		want time.Duration
	}{
		{"at the grant it is the TTL", noon, time.Minute, time.Minute},
		{"later it is what is left", noon + 20*second, time.Minute, 40 * time.Second},
		{"on a clock behind that of the grant it is the TTL", noon - second, time.Minute, time.Minute},
		{"a renewal that asks for less sees what it asks for", noon, time.Second, time.Second},
	} {
		if got := held.Lease(lease.Name{}, c.now, c.ttl).Remaining; got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestALeaseTellsOfTheOneThatRanOutBeforeIt(t *testing.T) {
	n := lease.Name{Namespace: "a", Lock: "b"}
	want := lease.Lease{
		Name: n, Token: held.Token, ID: "lease-1", Holder: "worker-1", TTL: time.Minute,
		AcquiredAt: noon.Time(), ExpiresAt: (noon + minute).Time(), Remaining: time.Minute,
	}
	if got := held.Lease(n, noon, time.Hour); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	after := change(held, func(r *protocol.Record) { r.PrevToken, r.PrevHolder, r.PrevExpires = 5, "worker-0", noon-hour })
	if a := after.Lease(n, noon, time.Hour).Abandoned; a == nil || *a != (lease.Abandoned{Holder: "worker-0", Token: 5, ExpiredAt: (noon - hour).Time()}) {
		t.Errorf("got %+v", a)
	}
	after.PrevExpires = 0
	if a := after.Lease(n, noon, time.Hour).Abandoned; a != nil {
		t.Errorf("a lease that was released is called abandoned: %+v", a)
	}
}

func TestTheStateOfALock(t *testing.T) {
	n := lease.Name{Namespace: "a", Lock: "b"}
	for _, c := range []struct {
		name   string
		record protocol.Record
		now    protocol.Instant
		want   lease.State
	}{
		{"nothing is recorded", protocol.Record{}, noon, lease.State{}},
		{"held", held, noon + 20*second, lease.State{
			Held: true, Token: held.Token, Holder: "worker-1", Metadata: "job 1", AcquiredAt: noon.Time(),
			ExpiresAt: held.Expires.Time(), Remaining: 40 * time.Second, AvailableAt: held.Free.Time(),
		}},
		{"run out, in its lock delay", held, held.Expires, lease.State{
			Token: held.Token, Holder: "worker-1", AvailableAt: held.Free.Time(),
			Abandoned: &lease.Abandoned{Holder: "worker-1", Token: held.Token, ExpiredAt: held.Expires.Time()},
		}},
		{"run out, and nobody took over", held, held.Free, lease.State{
			Token: held.Token, Holder: "worker-1",
			Abandoned: &lease.Abandoned{Holder: "worker-1", Token: held.Token, ExpiredAt: held.Expires.Time()},
		}},
		{"released", released, noon + second, lease.State{Token: held.Token, Holder: "worker-1"}},
		{"released within its minimum hold", change(released, func(r *protocol.Record) { r.Free = noon + 10*second }), noon + second,
			lease.State{Token: held.Token, Holder: "worker-1", AvailableAt: (noon + 10*second).Time()}},
		{"broken", broken, noon + second, lease.State{Token: held.Token + 1, Holder: "worker-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.record.State(n, c.now)
			if (got.Abandoned == nil) != (c.want.Abandoned == nil) || got.Abandoned != nil && *got.Abandoned != *c.want.Abandoned {
				t.Errorf("abandoned: got %+v, want %+v", got.Abandoned, c.want.Abandoned)
			}
			got.Abandoned, c.want.Abandoned, c.want.Name = nil, nil, n
			if got != c.want {
				t.Errorf("got  %#v\nwant %#v", got, c.want)
			}
		})
	}
}

func TestALeaseThatIsPrintedGivesNoSecretAway(t *testing.T) {
	l := held.Lease(lease.Name{Namespace: "a", Lock: "b"}, noon, time.Minute)
	for _, format := range []string{"%v", "%+v", "%s"} {
		if s := fmt.Sprintf(format, l); strings.Contains(s, l.ID) || !strings.Contains(s, l.Token.String()) {
			t.Errorf("%s prints %s", format, s)
		}
	}
}

// A deployment may lower its limit while leases live.
func TestALeaseOfAnEarlierLimitIsRenewedForLess(t *testing.T) {
	q := lease.RenewRequest{LeaseID: held.LeaseID, Token: held.Token, TTL: time.Hour}
	r, err := held.Renew(noon, q, protocol.Rules{MaxTTL: 10 * time.Minute})
	if err != nil || r.TTL != 10*time.Minute || r.Expires != noon+10*minute {
		t.Errorf("got %+v, %v, want it to live for 10 minutes", r, err)
	}
}
