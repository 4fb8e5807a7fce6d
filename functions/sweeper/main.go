// Command sweeper is a scheduled Lambda function that retires idle locks in a
// table with multi-Region strong consistency, where DynamoDB's TTL does not
// work. Elsewhere it is not needed.
//
// It logs one line for each run. What a run cannot finish in its time, the next
// one goes on with.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	s, err := newSweeper(context.Background(), os.Getenv)
	if err != nil {
		log.Error("misconfigured", "error", err)
		os.Exit(1)
	}
	lambda.Start(handler(s, log))
}

// newSweeper reads the configuration from the environment:
//
//	TABLE       name of the table; required
//	SWEEP_RATE  requests a second; see [dynamolease.Sweeper]
//	AWS_ENDPOINT_URL_DYNAMODB
//	            another endpoint than the Region's
//
// and what the SDK reads.
func newSweeper(ctx context.Context, getenv func(string) string) (*dynamolease.Sweeper, error) {
	s := &dynamolease.Sweeper{Table: getenv("TABLE")}
	if s.Table == "" {
		return nil, errors.New("TABLE is not set")
	}
	if v := getenv("SWEEP_RATE"); v != "" {
		var err error
		if s.Rate, err = strconv.ParseFloat(v, 64); err != nil || s.Rate == 0 {
			return nil, fmt.Errorf("SWEEP_RATE is %q, want requests a second", v)
		}
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	o := dynamodb.Options{Region: c.Region, Credentials: c.Credentials}
	if endpoint := getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
		o.BaseEndpoint = &endpoint
	}
	s.Client = dynamolease.NewClientFrom(o)
	return s, nil
}

// An event is what EventBridge says of itself.
type event struct{ Time time.Time }

// handler sweeps by the clock of EventBridge unless ours is behind: it is the
// only one here that could let a token come again by being days ahead, and the
// event's age makes it safer still.
func handler(s *dynamolease.Sweeper, log *slog.Logger) func(context.Context, event) error {
	return func(ctx context.Context, e event) error {
		now := time.Now()
		if e.Time.Before(now) {
			now = e.Time
		}
		started := time.Now()
		swept, err := s.Sweep(ctx, now)
		attrs := []any{
			"Retired", swept.Retired, "Kept", swept.Kept, "Seen", swept.Seen, "PassAgeMinutes", passAge(swept, now).Minutes(),
			"done", swept.Done, "ms", time.Since(started).Milliseconds(), "_aws", embedded(started),
		}
		if err != nil {
			log.Error("sweep", append(attrs, "error", err)...)
			return err
		}
		log.Info("sweep", attrs...)
		return nil
	}
}

// passAge is for how long a pass over the table has not come to its end: what
// grows when there is more to retire than the sweeper can.
func passAge(s dynamolease.Swept, now time.Time) time.Duration {
	if s.Done || s.Began.IsZero() {
		return 0
	}
	return now.Sub(s.Began)
}

// embedded makes a line one in CloudWatch's embedded metric format.
func embedded(at time.Time) json.RawMessage {
	text, err := json.Marshal(map[string]any{
		"Timestamp": at.UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace":  "Pawl",
			"Dimensions": [][]string{{}},
			"Metrics": []map[string]string{
				{"Name": "Retired", "Unit": "Count"}, {"Name": "Kept", "Unit": "Count"}, {"Name": "Seen", "Unit": "Count"},
				{"Name": "PassAgeMinutes", "Unit": "None"},
			},
		}},
	})
	if err != nil {
		panic(err) // it is a constant but for the time
	}
	return text
}
