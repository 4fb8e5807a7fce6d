// Command sweeper is a scheduled Lambda function that retires idle locks in a
// table with multi-Region strong consistency, where DynamoDB's TTL does not
// work. Elsewhere it is not needed.
//
// It reads the name of the table from TABLE, and logs one line for each run.
// What a run cannot finish in its time, the next one goes on with.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil || os.Getenv("TABLE") == "" {
		log.Error("misconfigured", "table", os.Getenv("TABLE"), "error", err)
		os.Exit(1)
	}
	o := dynamodb.Options{Region: c.Region, Credentials: c.Credentials}
	if endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
		o.BaseEndpoint = &endpoint
	}
	lambda.Start(handler(&dynamolease.Sweeper{Client: dynamolease.NewClient(o), Table: os.Getenv("TABLE")}, log))
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
			"Retired", swept.Retired, "Kept", swept.Kept, "Seen", swept.Seen, "done", swept.Done,
			"ms", time.Since(started).Milliseconds(), "_aws", embedded(started),
		}
		if err != nil {
			log.Error("sweep", append(attrs, "error", err)...)
			return err
		}
		log.Info("sweep", attrs...)
		return nil
	}
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
			},
		}},
	})
	if err != nil {
		panic(err) // it is a constant but for the time
	}
	return text
}
