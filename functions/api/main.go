// Command api is the lock service as a Lambda function behind an API Gateway
// HTTP API: package httplease on package dynamolease, and nothing else.
//
// It is deployed twice, once for acquire, which may wait, and once for all
// other calls, so that waiters never take the concurrency that holders need to
// renew. It logs one JSON line for each call. Who calls is checked by the
// gateway in front of it, never here.
package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/pawl-lock/pawl/pkg/apigw"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

func main() {
	log := slog.New(metered{slog.NewJSONHandler(os.Stdout, nil)})
	slog.SetDefault(log)
	store, err := newStore(os.Getenv)
	if err != nil {
		log.Error("misconfigured", "error", err)
		os.Exit(1)
	}
	warm(store)
	lambda.Start(apigw.Handler(&httplease.Handler{Service: store, Log: log, Caller: caller}))
}

// caller is what API Gateway's authorizer found out. IAM has checked the path;
// for a JWT the handler checks the scopes.
func caller(r *http.Request) httplease.Caller {
	event, _ := apigw.FromContext(r.Context())
	return httplease.Caller{
		Principal: event.Caller.Principal,
		Received:  event.Time,
		Scoped:    event.Caller.JWT,
		Scopes:    event.Caller.Scopes,
	}
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
