// Command api is the lock service as a Lambda function behind an API Gateway
// HTTP API: package httplease on package dynamolease, and nothing else.
//
// It is deployed twice, once for acquire, which may wait, and once for all
// other calls, so that waiters never take the concurrency that holders need to
// renew. It logs one JSON line for each call. Who calls is checked by the
// gateway in front of it, by the kind of authorizer that package settings has;
// what that kind of authorizer does not vouch for is refused here.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/pawl-lock/pawl/functions/metrics"
	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/pkg/apigw"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

func main() {
	set, err := settings.ReadAPI(time.Now(), os.Getenv)
	log := slog.New(metrics.Handler{Handler: slog.NewJSONHandler(os.Stdout, nil), In: set.Metrics})
	slog.SetDefault(log)
	store, incomplete := newStore(set, os.Getenv)
	if err := errors.Join(err, incomplete); err != nil {
		log.Error("misconfigured", "error", err)
		os.Exit(1)
	}
	warm(store)
	lambda.Start(handler(store, set, log))
}

// handler is the function, on any service.
func handler(s lease.Service, set settings.API, log *slog.Logger) func(context.Context, apigw.Event) (events.APIGatewayV2HTTPResponse, error) {
	return apigw.Handler(&httplease.Handler{Service: s, Log: log, Caller: caller(set)})
}

// warm makes the connection to DynamoDB while Lambda still gives a starting
// function full speed, so that the first caller need not wait for it.
func warm(store *dynamolease.Store) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := store.Get(ctx, lease.Name{Namespace: "warm", Lock: "up"}); err != nil {
		slog.Warn("could not warm up", "error", err)
	}
}
