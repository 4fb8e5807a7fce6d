// Package apigw runs an [http.Handler] as a Lambda function behind an API
// Gateway HTTP API.
//
// The handler sees what it would see under net/http: path, query, headers and
// body byte for byte as the event carries them, the context with the function's
// deadline, and a ResponseWriter that follows net/http's rules. [FromContext]
// adds what only the gateway knows, above all who calls: that comes from the
// gateway's authorizer, never from a header that a client could write.
//
//	lambda.Start(apigw.Handler(mux))
//
// It reads payload format 2.0 only, and cannot give back what the gateway takes
// away. Paths arrive decoded, so "/" and "%2F" look alike, and repeated headers
// arrive joined with commas: carry free text in the query or the body. A
// response is sent when the handler returns, so there is no flushing, hijacking,
// trailer or 1xx response. The handler sees the part of the path that the route
// matched, without a stage or an API mapping in front of it. Under $default and
// greedy routes a stage is cut, and an API mapping is not.
package apigw

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/events"
)

// The answers that the adapter itself gives, as RFC 9457 problems. A handler
// that panicked may have made its change first, so its outcome is unknown.
const (
	badBody  = `{"type":"about:blank","title":"Bad Request","status":400,"detail":"the body is marked as base64 and is not","code":"invalid"}`
	panicked = `{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the service failed; the request may have taken effect","code":"outcome_unknown"}`
)

// Panicked is the message of the log record that a panic leaves: the function
// itself does not fail.
const Panicked = "apigw: handler panicked"

// Handler returns the function to give to lambda.Start. Each event is one call
// of h; the function is safe for concurrent use if h is.
//
// It fails only for an event that is not of payload format version 2.0. A panic
// in h, [http.ErrAbortHandler] too, is logged to [slog.Default] and answered
// with a 500 problem that says nothing of it.
func Handler(h http.Handler) func(context.Context, Event) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, e Event) (events.APIGatewayV2HTTPResponse, error) {
		if e.Version != "2.0" {
			return events.APIGatewayV2HTTPResponse{}, fmt.Errorf("apigw: event has payload format version %q: want 2.0", e.Version)
		}
		return serve(ctx, h, &e), nil
	}
}

func serve(ctx context.Context, h http.Handler, e *Event) (res events.APIGatewayV2HTTPResponse) {
	head := e.RequestContext.HTTP.Method == http.MethodHead
	r, err := newRequest(ctx, e)
	if err != nil {
		return problem(http.StatusBadRequest, badBody, head)
	}
	defer func() {
		if v := recover(); v != nil {
			slog.ErrorContext(ctx, Panicked, "panic", fmt.Sprint(v), "request_id", e.RequestContext.RequestID,
				"method", e.RequestContext.HTTP.Method, "path", e.RawPath, "stack", string(debug.Stack()))
			res = problem(http.StatusInternalServerError, panicked, head)
		}
	}()
	var w writer
	h.ServeHTTP(&w, r)
	return w.response(head)
}

func problem(status int, body string, head bool) events.APIGatewayV2HTTPResponse {
	var w writer
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.body.WriteString(body)
	return w.response(head)
}
