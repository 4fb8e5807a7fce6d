// Command sweeper is a scheduled Lambda function that retires idle locks in a
// table with multi-Region strong consistency, where DynamoDB's TTL does not
// work. Elsewhere it is not needed.
//
// It logs one line for each run. What a run cannot finish in its time, the next
// one goes on with.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/functions/metrics"
	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	set, err := settings.ReadSweeper(os.Getenv)
	s, incomplete := newSweeper(context.Background(), set, os.Getenv)
	if err := errors.Join(err, incomplete); err != nil {
		log.Error("misconfigured", "error", err)
		os.Exit(1)
	}
	lambda.Start(handler(s, set.Metrics, log))
}

// newSweeper returns the sweeper of a deployment. Beside the settings it reads
// what the SDK does, and AWS_ENDPOINT_URL_DYNAMODB for another endpoint than the
// Region's.
func newSweeper(ctx context.Context, set settings.Sweeper, getenv func(string) string) (*dynamolease.Sweeper, error) {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	o := dynamodb.Options{Region: c.Region, Credentials: c.Credentials}
	if endpoint := getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
		o.BaseEndpoint = &endpoint
	}
	return &dynamolease.Sweeper{Client: dynamolease.NewClientFrom(o), Table: set.Table, Rate: set.Rate}, nil
}

// An event is what EventBridge says of itself.
type event struct{ Time time.Time }

// handler sweeps by the clock of EventBridge unless ours is behind: it is the
// only one here that could let a token come again by being days ahead, and the
// event's age makes it safer still.
func handler(s *dynamolease.Sweeper, in string, log *slog.Logger) func(context.Context, event) error {
	return func(ctx context.Context, e event) error {
		now := time.Now()
		if e.Time.Before(now) {
			now = e.Time
		}
		started := time.Now()
		swept, err := s.Sweep(ctx, now)
		attrs := []any{
			metrics.Retired, swept.Retired, metrics.Kept, swept.Kept, metrics.Seen, swept.Seen,
			metrics.PassAge, passAge(swept, now).Minutes(),
			"done", swept.Done, "ms", time.Since(started).Milliseconds(),
			metrics.Line{At: started, In: in, Metrics: counted}.Attr(),
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

// counted is what each run counts.
var counted = []metrics.Definition{
	{Name: metrics.Retired, Unit: "Count"}, {Name: metrics.Kept, Unit: "Count"}, {Name: metrics.Seen, Unit: "Count"},
	{Name: metrics.PassAge, Unit: "None"},
}
