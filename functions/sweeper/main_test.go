package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

func TestARunRetiresByTheTimeOfItsEventAndNeverByALaterOne(t *testing.T) {
	client := dynamolease.NewClient(localtest.DynamoDBForTest(t).Options())
	table := "sweeper-" + lease.NewID()
	if err := dynamolease.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-9 * 24 * time.Hour)
	store := &dynamolease.Store{Client: client, Table: table, Now: func() time.Time { return old }}
	if _, err := store.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "idle"}, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct {
		what    string
		event   string
		retired float64
	}{
		{"an event without a time", `{}`, 0},
		{"an event from before the retirement", `{"time": "` + old.UTC().Format(time.RFC3339) + `"}`, 0},
		{"an event of today", `{"time": "` + time.Now().UTC().Format(time.RFC3339) + `"}`, 1},
	} {
		var e event
		if err := json.Unmarshal([]byte(run.event), &e); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		sweep := handler(&dynamolease.Sweeper{Client: client, Table: table}, slog.New(slog.NewJSONHandler(&log, nil)))
		if err := sweep(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("not one line: %s", log.String())
		}
		if line["Retired"] != run.retired || line["done"] != true {
			t.Errorf("%s: got %v", run.what, line)
		}
		for _, m := range metrics(t, log.Bytes()) {
			if _, ok := line[m].(float64); !ok {
				t.Errorf("%s is a metric, and has no number", m)
			}
		}
	}
}

func TestARunThatFailsSaysSoAndIsAnError(t *testing.T) {
	client := dynamolease.NewClient(localtest.DynamoDBForTest(t).Options())
	var log bytes.Buffer
	err := handler(&dynamolease.Sweeper{Client: client, Table: "missing"}, slog.New(slog.NewJSONHandler(&log, nil)))(t.Context(), event{})
	if err == nil || !bytes.Contains(log.Bytes(), []byte(`"level":"ERROR"`)) {
		t.Errorf("got %v, logged %s", err, log.String())
	}
}

// metrics returns the names that CloudWatch will look for in a line.
func metrics(t *testing.T, line []byte) (names []string) {
	t.Helper()
	var embedded struct {
		AWS struct {
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
	}
	if err := json.Unmarshal(line, &embedded); err != nil {
		t.Fatal(err)
	}
	m := embedded.AWS.CloudWatchMetrics
	if len(m) != 1 || m[0].Namespace != "Pawl" || len(m[0].Dimensions) != 1 || len(m[0].Metrics) != 3 {
		t.Fatalf("not in the embedded metric format: %s", line)
	}
	for _, one := range m[0].Metrics {
		names = append(names, one.Name)
	}
	return names
}
