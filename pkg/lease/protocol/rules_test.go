package protocol_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

func TestRulesHaveLimits(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name  string
		rules protocol.Rules
		valid bool
	}{
		{"the defaults", protocol.Rules{}, true},
		{"the shortest maximum TTL", protocol.Rules{MaxTTL: time.Second}, true},
		{"a maximum TTL below the shortest TTL", protocol.Rules{MaxTTL: time.Second - 1}, false},
		{"the longest maximum TTL", protocol.Rules{MaxTTL: 24 * time.Hour}, true},
		{"a longer maximum TTL", protocol.Rules{MaxTTL: 24*time.Hour + 1}, false},
		{"a negative maximum TTL", protocol.Rules{MaxTTL: -time.Hour}, false},
		{"the longest lock delay", protocol.Rules{MaxLockDelay: time.Minute}, true},
		{"a longer lock delay", protocol.Rules{MaxLockDelay: time.Minute + 1}, false},
		{"a negative lock delay", protocol.Rules{MaxLockDelay: -1}, false},
		{"the largest skew", protocol.Rules{Skew: time.Minute}, true},
		{"a larger skew", protocol.Rules{Skew: time.Minute + 1}, false},
		{"a negative skew, with which two would hold a lock", protocol.Rules{Skew: -1}, false},
		{"the shortest retention", protocol.Rules{Retention: 24 * time.Hour}, true},
		{"a retention shorter than a request can be under way", protocol.Rules{Retention: 24*time.Hour - 1}, false},
		{"the longest retention", protocol.Rules{Retention: 10 * year}, true},
		{"a longer retention", protocol.Rules{Retention: 10*year + 1}, false},
		{"a TTL in milliseconds that has overflowed", protocol.Rules{MaxTTL: overflowing * time.Millisecond}, false},
	} {
		if err := c.rules.Validate(noon.Time()); (err == nil) != c.valid {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// overflowing milliseconds are too many for a duration.
var overflowing time.Duration = 1 << 45

func TestTheTimesOfARestoreHaveLimits(t *testing.T) {
	const none protocol.Instant = 0
	for _, c := range []struct {
		name          string
		restored, end protocol.Instant
		field         string // of the error
	}{
		{"a restore just now", noon, quarantineEnd, ""},
		{"one by a clock that is ahead by the skew", noon + second, quarantineEnd + second, ""},
		{"one that is still to come", noon + second + ms, quarantineEnd + 2*second, "RestoredAt"},
		{"one a year ago", noon - 365*day, noon - 364*day, ""},
		{"a time in seconds", noon / 1000, quarantineEnd, "RestoredAt"},
		{"a time in microseconds", noon * 1000, quarantineEnd, "RestoredAt"},
		{"a digit too many", noon * 10, quarantineEnd, "RestoredAt"},
		{"before there was a Pawl", noon - 3900*day, noon - 3899*day, "RestoredAt"},
		{"no end of the quarantine", noon, none, "QuarantineEnd"},
		{"an end without a restore", none, noon, "QuarantineEnd"},
		{"an end before the floor", noon, floor - ms, "QuarantineEnd"},
		{"an end at the floor", noon, floor, ""},
		{"the end that the longest limits have", noon, noon + day + 2*minute, ""},
		{"a later one, which no limits can have", noon, noon + day + 2*minute + ms, "QuarantineEnd"},
		{"a digit too many in the end", noon, quarantineEnd * 10, "QuarantineEnd"},
	} {
		err := protocol.Rules{RestoredAt: c.restored.Time(), QuarantineEnd: c.end.Time()}.Validate(noon.Time())
		if (err == nil) != (c.field == "") || err != nil && !strings.Contains(err.Error(), "("+c.field+")") {
			t.Errorf("%s: got %v, want an error about %q", c.name, err, c.field)
		}
	}
}

func TestTheFloorDependsOnTheRestoreOnly(t *testing.T) {
	if got := (protocol.Rules{}).Floor(); got != 0 {
		t.Errorf("without a restore there is one: %d", got)
	}
	for _, r := range []protocol.Rules{
		{}, {MaxTTL: 24 * time.Hour}, {MaxTTL: time.Second}, {MaxLockDelay: time.Second}, {Skew: time.Minute},
	} {
		if r.RestoredAt = noon.Time(); r.Floor() != floor {
			t.Errorf("%+v: got %d, want %d", r, r.Floor(), floor)
		}
	}
}

func TestTheQuarantineOutlastsAllThatARestoreCanHaveForgotten(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules protocol.Rules
		want  protocol.Instant
	}{
		{"the defaults", protocol.Rules{}, quarantineEnd},
		{"the longest TTL, a lock delay and a skew",
			protocol.Rules{MaxTTL: 24 * time.Hour, MaxLockDelay: 7 * time.Second, Skew: 3 * time.Second}, noon + day + 10*second},
		{"short limits do not end it before the floor",
			protocol.Rules{MaxTTL: time.Second, MaxLockDelay: time.Second, Skew: time.Second}, floor},
	} {
		got := c.rules.QuarantineAfter(noon.Time())
		c.rules.RestoredAt, c.rules.QuarantineEnd = noon.Time(), got
		if err := c.rules.Validate(noon.Time()); protocol.At(got) != c.want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want.Time())
		}
	}
}

func TestADoubtfulClockGrantsNothing(t *testing.T) {
	for _, c := range []struct {
		name     string
		received time.Time
		rules    protocol.Rules
		open     bool
	}{
		{"nothing is known of the gateway's clock", time.Time{}, protocol.Rules{}, true},
		{"both say the same", noon.Time(), protocol.Rules{}, true},
		{"the call waited as long as the gateway does", (noon - 30*second).Time(), protocol.Rules{}, true},
		{"the call is older: its caller has been told that it failed", (noon - 30*second - ms).Time(), protocol.Rules{}, false},
		{"the process was frozen for days", (noon - 3*day).Time(), protocol.Rules{}, false},
		{"the call comes from the future, within the skew", (noon + second).Time(), protocol.Rules{}, true},
		{"the call comes from the future", (noon + second + ms).Time(), protocol.Rules{}, false},
		{"a larger skew is allowed", (noon + 5*second).Time(), protocol.Rules{Skew: 5 * time.Second}, true},
		{"no more than that", (noon + 5*second + ms).Time(), protocol.Rules{Skew: 5 * time.Second}, false},
	} {
		err := c.rules.Open(noon, &lease.Call{Received: c.received})
		if (err == nil) != c.open {
			t.Errorf("%s: got %v", c.name, err)
		}
		var detail *lease.RetryError
		if !c.open && (!errors.Is(err, lease.ErrClockSkew) || !errors.As(err, &detail) || detail.After <= 0) {
			t.Errorf("%s: got %v, want ErrClockSkew, to be tried again", c.name, err)
		}
	}
}

func TestAGrantWaitsForTheSkewAndTheLockDelay(t *testing.T) {
	q := lease.AcquireRequest{
		Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute, Holder: "worker-1", RequestID: lease.NewID(),
		Metadata: "job 1", MinHold: 2 * time.Second, LockDelay: 3 * time.Second,
	}
	got, err := protocol.Rules{Skew: 4 * time.Second}.Grant(q, "role-1")
	want := protocol.Grant{
		LeaseID: got.LeaseID, RequestID: q.RequestID, Holder: "worker-1", Principal: "role-1", Metadata: "job 1",
		TTL: time.Minute, MinHold: 2 * time.Second, Delay: 7 * time.Second,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, error %v, want %+v", got, err, want)
	}
	if g, err := (protocol.Rules{}).Grant(q, ""); err != nil || g.Delay != 4*time.Second {
		t.Errorf("got a delay of %v, error %v, want the default skew of 1s and 3s", g.Delay, err)
	}
	q.TTL = 0
	if g, err := (protocol.Rules{}).Grant(q, ""); err == nil || g != (protocol.Grant{}) {
		t.Errorf("got %+v from a request without a TTL", g)
	}
}

func TestEveryGrantHasIDsOfItsOwn(t *testing.T) {
	q := lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: time.Minute}
	seen := make(map[string]bool)
	for range 1000 {
		g, err := protocol.Rules{}.Grant(q, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{g.LeaseID, g.RequestID} {
			if seen[id] || len(id) != 22 {
				t.Fatalf("%q is not 128 bits in base64, or not new", id)
			}
			seen[id] = true
		}
	}
}

func TestInstantsRoundSoThatNothingEndsLate(t *testing.T) {
	for name, c := range map[string]struct{ got, want int64 }{
		"a time is rounded down":             {int64(protocol.At(noon.Time().Add(time.Millisecond - 1))), int64(noon)},
		"no time is zero":                    {int64(protocol.At(time.Time{})), 0},
		"a duration is rounded down":         {int64(noon.Add(2*time.Millisecond - 1)), int64(noon + ms)},
		"a difference":                       {int64((noon + second).Sub(noon)), int64(time.Second)},
		"seconds are rounded up":             {(noon + ms).Seconds(), int64(noon)/1000 + 1},
		"whole seconds stay":                 {noon.Seconds(), int64(noon) / 1000},
		"the last millisecond counts as one": {(noon + second - ms).Seconds(), int64(noon)/1000 + 1},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", name, c.got, c.want)
		}
	}
	if got := protocol.Instant(0).Time(); !got.IsZero() {
		t.Errorf("zero became %v", got)
	}
	if got := noon.Time(); protocol.At(got) != noon || got.Location() != time.UTC {
		t.Errorf("noon became %v", got)
	}
}
