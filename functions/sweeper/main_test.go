package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

func TestARunRetiresByTheTimeOfItsEventAndNeverByALaterOne(t *testing.T) {
	client := dynamolease.NewClientFrom(localtest.DynamoDBForTest(t).Options())
	table := "sweeper-" + lease.NewID()
	if err := dynamolease.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-9 * 24 * time.Hour)
	idle(t, client, table, old)
	for _, run := range []struct {
		what    string
		event   string
		retired float64
	}{
		{"an event from before the retirement", `{"time": "` + old.UTC().Format(time.RFC3339) + `"}`, 0},
		{"an event of today", `{"time": "` + time.Now().UTC().Format(time.RFC3339) + `"}`, 1},
	} {
		var e event
		if err := json.Unmarshal([]byte(run.event), &e); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		sweep := handler(&dynamolease.Sweeper{Client: client, Table: table}, "Pawl/a", slog.New(slog.NewJSONHandler(&log, nil)))
		if err := sweep(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("not one line: %s", log.String())
		}
		if line["Retired"] != run.retired || line["done"] != true || line["PassAgeMinutes"] != 0. {
			t.Errorf("%s: got %v", run.what, line)
		}
		for _, m := range defined(t, log.Bytes()) {
			if _, ok := line[m].(float64); !ok {
				t.Errorf("%s is a metric, and has no number", m)
			}
		}
	}
}

// idle makes the item of a lock that has not been used since then.
func idle(t *testing.T, client *dynamodb.Client, table string, then time.Time) {
	t.Helper()
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		dynamolease.KeyAttribute:    &types.AttributeValueMemberS{Value: "a#idle"},
		dynamolease.RetireAttribute: number(then.Add(7 * 24 * time.Hour).Unix()),
		"tok":                       number(then.UnixMilli()),
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnEventWithoutATimeIsAnErrorAndRetiresNothing(t *testing.T) {
	s := &dynamolease.Sweeper{Client: dynamolease.NewClientFrom(localtest.DynamoDBForTest(t).Options()), Table: "any"}
	err := handler(s, "Pawl/a", slog.New(slog.DiscardHandler))(t.Context(), event{})
	if !errors.Is(err, lease.ErrMisconfigured) {
		t.Errorf("got %v", err)
	}
}

// A pass of days is one that does not keep up.
func TestTheAgeOfAPassThatIsNotDoneIsAMetric(t *testing.T) {
	client := dynamolease.NewClientFrom(localtest.DynamoDBForTest(t).Options())
	table := "sweeper-" + lease.NewID()
	if err := dynamolease.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	put := func(item map[string]types.AttributeValue) {
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		put(map[string]types.AttributeValue{dynamolease.KeyAttribute: &types.AttributeValueMemberS{Value: "a#" + strconv.Itoa(i)}})
	}
	put(map[string]types.AttributeValue{
		dynamolease.KeyAttribute: &types.AttributeValueMemberS{Value: dynamolease.SweeperKey},
		"began":                  &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(-30*time.Hour).UnixMilli(), 10)},
	})
	for _, run := range []struct {
		limit time.Duration // two seconds are for one or two items
		age   float64
		done  bool
	}{{6500 * time.Millisecond, 30 * 60, false}, {time.Minute, 0, true}} {
		var log bytes.Buffer
		s := &dynamolease.Sweeper{Client: client, Table: table, Rate: 1, Page: 1}
		if run.done {
			s.Rate = 100
		}
		ctx, cancel := context.WithTimeout(t.Context(), run.limit)
		err := handler(s, "Pawl/a", slog.New(slog.NewJSONHandler(&log, nil)))(ctx, event{now})
		cancel()
		var line map[string]any
		if err := errors.Join(err, json.Unmarshal(log.Bytes(), &line)); err != nil {
			t.Fatal(err)
		}
		if line["PassAgeMinutes"] != run.age || line["done"] != run.done {
			t.Errorf("got %v, want an age of %v", line, run.age)
		}
	}
}

func TestTheSweeperIsAsItIsSet(t *testing.T) {
	s, err := newSweeper(t.Context(), settings.Sweeper{Table: "locks", Metrics: "Pawl/a", Rate: 250}, func(string) string { return "" })
	if err != nil || s.Table != "locks" || s.Rate != 250 || s.Client == nil {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestARunThatFailsSaysSoAndIsAnError(t *testing.T) {
	client := dynamolease.NewClientFrom(localtest.DynamoDBForTest(t).Options())
	var log bytes.Buffer
	err := handler(&dynamolease.Sweeper{Client: client, Table: "missing"}, "Pawl/a", slog.New(slog.NewJSONHandler(&log, nil)))(t.Context(), event{time.Now()})
	if err == nil || !bytes.Contains(log.Bytes(), []byte(`"level":"ERROR"`)) {
		t.Errorf("got %v, logged %s", err, log.String())
	}
}

// defined returns the names that CloudWatch will look for in a line.
func defined(t *testing.T, line []byte) (names []string) {
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
	if len(m) != 1 || m[0].Namespace != "Pawl/a" || len(m[0].Dimensions) != 1 || len(m[0].Metrics) != 4 {
		t.Fatalf("not in the embedded metric format: %s", line)
	}
	for _, one := range m[0].Metrics {
		names = append(names, one.Name)
	}
	return names
}
