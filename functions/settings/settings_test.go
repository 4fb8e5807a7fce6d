package settings

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

func read(env map[string]string) (API, error) {
	return ReadAPI(time.Now(), func(name string) string { return env[name] })
}

func TestTheFunctionReadsWhatTheStackWrites(t *testing.T) {
	for _, a := range []API{
		{Table: "locks", Auth: IAM, Metrics: "Pawl/a"},
		{Table: "locks", Auth: JWT, ScopeClaim: "roles", Metrics: "Pawl/a"},
		{Table: "locks", Auth: IAM, Metrics: "Pawl/a", Rules: protocol.Rules{
			MaxTTL: 2 * time.Hour, MaxLockDelay: time.Second, Skew: 500 * time.Millisecond,
			RestoredAt: time.UnixMilli(1790000000123), QuarantineEnd: time.UnixMilli(1790007200123),
		}},
	} {
		if got, err := read(a.Environ()); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("got %+v, %v, want %+v", got, err, a)
		}
	}
	for _, s := range []Sweeper{{Table: "locks", Metrics: "Pawl/a"}, {Table: "locks", Metrics: "Pawl/a", Rate: 0.5}} {
		env := s.Environ()
		if got, err := ReadSweeper(func(name string) string { return env[name] }); err != nil || got != s {
			t.Errorf("got %+v, %v, want %+v", got, err, s)
		}
	}
}

func TestEverySettingOfTheSweeperThatIsWrongIsNamed(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"TABLE", ""}, {"METRICS", ""}, {"SWEEP_RATE", "fast"}, {"SWEEP_RATE", "0"}, {"SWEEP_RATE", "-1"}, {"SWEEP_RATE", "NaN"},
	} {
		env := Sweeper{Table: "locks", Metrics: "Pawl/a"}.Environ()
		env[c.name] = c.value
		if _, err := ReadSweeper(func(name string) string { return env[name] }); err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s=%s: got %v", c.name, c.value, err)
		}
	}
}

func TestEverySettingThatIsWrongIsNamed(t *testing.T) {
	good := API{Table: "locks", Auth: JWT, Metrics: "Pawl/a"}.Environ()
	for _, c := range []struct{ name, value string }{
		{"TABLE", ""}, {"METRICS", ""},
		{"AUTH", ""}, {"AUTH", "none"}, {"AUTH", "IAM"}, {"AUTH", "iam,jwt"},
		{"MAX_TTL_MS", "1h"}, {"MAX_TTL_MS", "0"}, {"MAX_TTL_MS", "-1"}, {"MAX_TTL_MS", "18446747673710"},
		{"SKEW_MS", "18446744073710"}, {"MAX_LOCK_DELAY_MS", "1e3"},
		{"RESTORED_AT_MS", "17962671336760"}, {"RESTORED_AT_MS", "9999999999999999999"},
		{"QUARANTINE_END_MS", "tomorrow"},
	} {
		env := maps.Clone(good)
		env[c.name] = c.value
		if _, err := read(env); err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s=%s: got %v", c.name, c.value, err)
		}
	}
	for _, claim := range []string{"sub", "iss", "client_id", " roles ", "a b"} {
		if _, err := read(API{Table: "locks", Auth: JWT, ScopeClaim: claim, Metrics: "Pawl/a"}.Environ()); err == nil {
			t.Errorf("scopes from the claim %q were accepted", claim)
		}
	}
	tomorrow := time.Now().Add(24 * time.Hour)
	for name, a := range map[string]API{
		"a restore of tomorrow": {Table: "locks", Auth: IAM, Metrics: "Pawl/a", Rules: protocol.Rules{
			RestoredAt: tomorrow, QuarantineEnd: tomorrow.Add(time.Hour)}},
		"RestoredAt":    {Table: "locks", Auth: IAM, Metrics: "Pawl/a", Rules: protocol.Rules{RestoredAt: time.UnixMilli(1790000000123)}},
		"QuarantineEnd": {Table: "locks", Auth: IAM, Metrics: "Pawl/a", Rules: protocol.Rules{QuarantineEnd: time.UnixMilli(1790000000123)}},
	} {
		if _, err := read(a.Environ()); err == nil {
			t.Errorf("%s was accepted alone", name)
		}
	}
	if _, err := read(API{Table: "locks", Auth: IAM, Metrics: "Pawl/a", ScopeClaim: "roles"}.Environ()); err == nil {
		t.Error("a claim was accepted where there are no tokens")
	}
}
