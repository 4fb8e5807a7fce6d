package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/apigw"
)

// A line is what CloudWatch reads.
type line struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []set
	} `json:"_aws"`
	members map[string]any
}

// written is what becomes of one record.
func written(t *testing.T, log func(*slog.Logger)) line {
	t.Helper()
	var text bytes.Buffer
	log(slog.New(Handler{slog.NewJSONHandler(&text, nil), "Pawl/a"}))
	var l line
	if err := json.Unmarshal(text.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &l.members); err != nil {
		t.Fatal(err)
	}
	for _, s := range l.AWS.CloudWatchMetrics {
		if s.Namespace != "Pawl/a" || l.AWS.Timestamp == 0 || len(s.Dimensions) != 1 {
			t.Errorf("not in the embedded metric format: %s", text.String())
		}
		for _, m := range s.Metrics {
			// A metric without a number is dropped, silently.
			if _, ok := l.members[m.Name].(float64); !ok {
				t.Errorf("%s has no number in %s", m.Name, text.String())
			}
		}
	}
	return l
}

// counted returns what a line counts, as "Granted", and as "Granted by" a
// namespace; what every call measures is left out.
func (l line) counted() (all []string) {
	for _, s := range l.AWS.CloudWatchMetrics {
		for _, m := range s.Metrics {
			switch {
			case slices.Equal(s.Dimensions[0], []string{Namespace}):
				all = append(all, m.Name+" by "+l.members[Namespace].(string))
			case len(s.Dimensions[0]) > 0:
				all = append(all, m.Name+" by something else")
			case !slices.Contains([]string{StoreRequests, StoreTime, Time}, m.Name):
				all = append(all, m.Name)
			}
		}
	}
	return all
}

func call(action, outcome, namespace string, more ...any) func(*slog.Logger) {
	return func(log *slog.Logger) {
		log.Info("call", append([]any{"action", action, "outcome", outcome, "namespace", namespace, "store_requests", 1, "store_ms", 2.5, "ms", 3.5}, more...)...)
	}
}

func TestEachCallCountsForWhatCameOfIt(t *testing.T) {
	for _, c := range []struct {
		action, outcome string
		late            any
		want            string
	}{
		{"acquire", "granted", nil, "Granted, Granted by a"},
		{"acquire", "granted_abandoned", nil, "Granted, TakenOver, Granted by a, TakenOver by a"},
		{"acquire", "repeated", nil, "Repeated, Repeated by a"},
		{"acquire", "held", nil, "Refused, Refused by a"},
		{"acquire", "request_spent", nil, ""},
		{"renew", "renewed", nil, "Renewed, Renewed by a"},
		{"renew", "lease_lost", true, "CameBackLate, CameBackLate by a"},
		{"renew", "lease_expired", true, "CameBackLate, CameBackLate by a"},
		{"release", "lease_lost", true, "CameBackLate, CameBackLate by a"},
		{"release", "lease_expired", true, "CameBackLate, CameBackLate by a"},
		// Anyone can make up the id of a lease that never was.
		{"renew", "lease_lost", nil, ""},
		{"renew", "lease_lost", false, ""},
		{"renew", "lease_lost", "true", ""},
		{"release", "lease_lost", false, ""},
		{"release", "released", nil, "Released, Released by a"},
		{"release", "released_before", nil, "ReleasedBefore, ReleasedBefore by a"},
		{"release", "released_late", nil, "ReleasedLate, ReleasedLate by a"},
		{"break", "broken", nil, "Broken, Broken by a"},
		{"break", "token_changed", nil, ""},
		// These say nothing of the namespace.
		{"acquire", "throttled", nil, "Throttled"},
		{"renew", "clock_skew", nil, "ClockSkew"},
		{"release", "outcome_unknown", nil, "Unknown"},
		{"read", "unavailable", nil, "Unavailable"},
		{"read", "misconfigured", nil, "Misconfigured"},
		{"break", "quarantine", nil, "Quarantined"},
		{"read", "read", nil, ""},
		{"acquire", "renewed", nil, ""},
	} {
		var more []any
		if c.late != nil {
			more = []any{"late", c.late}
		}
		l := written(t, call(c.action, c.outcome, "a", more...))
		if got := strings.Join(l.counted(), ", "); got != c.want {
			t.Errorf("%s, %s, late %v: counts for %q, want %q", c.action, c.outcome, c.late, got, c.want)
		}
		if n := len(l.AWS.CloudWatchMetrics); n == 0 || len(l.AWS.CloudWatchMetrics[0].Metrics) < 3 {
			t.Errorf("%s, %s: does not measure: %v", c.action, c.outcome, l.members)
		}
	}
}

// Each new value of a dimension is paid for, and one that is too long loses the
// line's metrics.
func TestWhatACallerMakesUpIsNoDimension(t *testing.T) {
	for _, namespace := range []string{"", "A", "a b", "a\n", "..", strings.Repeat("a", 64), strings.Repeat("a", 5000), "\u202ea"} {
		for _, outcome := range []string{"granted", "held", "invalid", "forbidden", "too_large", "not_found", "throttled", "read"} {
			for _, c := range written(t, call("acquire", outcome, namespace)).counted() {
				if strings.Contains(c, " by ") {
					t.Errorf("%s in %.10q: counts for %.20q", outcome, namespace, c)
				}
			}
		}
	}
	for _, outcome := range []string{"invalid", "forbidden", "too_large", "method_not_allowed", "read", "unavailable", "never heard of"} {
		for _, c := range written(t, call("acquire", outcome, "made-up")).counted() {
			if strings.Contains(c, " by ") {
				t.Errorf("%s: counts for %q", outcome, c)
			}
		}
	}
}

func TestAPanicCounts(t *testing.T) {
	l := written(t, func(log *slog.Logger) {
		before := slog.Default()
		defer slog.SetDefault(before)
		slog.SetDefault(log)
		h := apigw.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }))
		var e apigw.Event
		if err := json.Unmarshal([]byte(`{"version":"2.0","rawPath":"/","requestContext":{"http":{"method":"GET","protocol":"HTTP/1.1","sourceIp":"192.0.2.1"}}}`), &e); err != nil {
			t.Fatal(err)
		}
		if a, err := h(context.Background(), e); err != nil || a.StatusCode != http.StatusInternalServerError {
			t.Fatalf("got %+v, %v", a, err)
		}
	})
	if got := l.counted(); !slices.Equal(got, []string{"Panicked"}) {
		t.Errorf("counts for %v", got)
	}
}

func TestWhatIsAboutNoLockCountsForNothing(t *testing.T) {
	for _, log := range []func(*slog.Logger){
		call("", "read", ""),
		func(log *slog.Logger) { log.Warn("could not warm up", "namespace", "a", "outcome", "granted") },
	} {
		if l := written(t, log); l.members["_aws"] != nil {
			t.Errorf("got %v", l.members)
		}
	}
}
