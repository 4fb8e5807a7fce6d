package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// line is what a call logs, as CloudWatch reads it.
type line struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	} `json:"_aws"`
	members map[string]any
}

// log makes calls and returns their lines.
func log(t *testing.T, calls ...[3]string) (lines []line) {
	t.Helper()
	var text bytes.Buffer
	h := &httplease.Handler{Service: new(lease.Memory), Log: slog.New(metered{slog.NewJSONHandler(&text, nil)}), Caller: httplease.Anyone}
	for _, c := range calls {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), c[0], c[1], strings.NewReader(c[2])))
	}
	for one := range strings.Lines(text.String()) {
		var l line
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(one), &l.members); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

const lock = `{"lock":"a","ttl_ms":60000}`

func TestEachCallCountsForWhatCameOfIt(t *testing.T) {
	lost := `{"lock":"a","lease_id":"0123456789012345678901","token":1,"ttl_ms":60000}`
	lines := log(t,
		[3]string{http.MethodPost, "/v1/payments/acquire", lock},
		[3]string{http.MethodPost, "/v1/payments/acquire", lock},
		[3]string{http.MethodPost, "/v1/payments/renew", lost},
		[3]string{http.MethodPost, "/v1/payments/renew", "nonsense"},
	)
	want := []string{"Granted", "Refused", "CameBackLate", ""}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines", len(lines))
	}
	for i, l := range lines {
		if len(l.AWS.CloudWatchMetrics) != 1 || l.AWS.Timestamp == 0 {
			t.Fatalf("line %d is not in the embedded metric format: %v", i, l.members)
		}
		d := l.AWS.CloudWatchMetrics[0]
		valid := i < len(lines)-1 // the last is not, and its namespace may be made up
		if d.Namespace != "Pawl" || len(d.Dimensions[0]) != 0 || (len(d.Dimensions) == 2) != valid || valid && d.Dimensions[1][0] != "namespace" {
			t.Errorf("line %d: got %+v", i, d)
		}
		counted := false
		for _, m := range d.Metrics {
			// A metric without a number is dropped, silently.
			if _, ok := l.members[m.Name].(float64); !ok {
				t.Errorf("line %d defines %s, and has no number of that name", i, m.Name)
			}
			counted = counted || m.Name == want[i]
		}
		if want[i] != "" && !counted {
			t.Errorf("line %d does not count for %s: %+v", i, want[i], d.Metrics)
		}
	}
}

func TestWhatIsAboutNoLockCountsForNothing(t *testing.T) {
	for _, l := range log(t, [3]string{http.MethodGet, "/healthz", ""}) {
		if l.members["_aws"] != nil {
			t.Errorf("got %v", l.members)
		}
	}
}
