package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

const (
	maxBody            = 10 << 20 // HTTP API quota "payload size"
	integrationTimeout = 30 * time.Second
)

// A Gateway serves an HTTP API. Its fields must not change once it serves.
type Gateway struct {
	Routes []Route

	// Authorizer guards every route that is not public. Nil lets everyone in.
	Authorizer Authorizer

	// Stage is the name of the stage. Empty means "$default", which is served
	// at the root; any other is the first segment of every path.
	Stage string

	// Timeout is how long the gateway waits for a function. Zero means 30
	// seconds, which in AWS is also the most.
	Timeout time.Duration

	// Log receives one record per request, with the reason of every refusal
	// and failure that the client is not told, as a warning. Nil discards them.
	Log *slog.Logger
}

// An Authorizer decides who is calling, by a request and its body, which has
// been read. It returns the "authorizer" part of the event's request context,
// or a [*Refusal].
type Authorizer func(r *http.Request, body []byte) (map[string]any, error)

// A Refusal is an answer the gateway gives itself, without asking the function.
type Refusal struct {
	Status    int
	Challenge string // the WWW-Authenticate header, if any
	Reason    string // for the log
}

func (r *Refusal) Error() string { return "gateway: " + r.Reason }

func refuse(status int, reason string) *Refusal { return &Refusal{Status: status, Reason: reason} }

// ServeHTTP answers with what the function said, or with {"message": …} if
// there was no function to ask, the caller may not ask it, or it failed.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := requestID()
	w.Header().Set("Apigw-Requestid", id)
	resp, err := g.serve(w, r, id)
	if err != nil {
		resp = failure(err)
	}
	if g.Log != nil {
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelWarn
		}
		g.Log.Log(r.Context(), level, "request",
			"id", id, "method", r.Method, "path", r.URL.Path, "status", resp.status, "error", err)
	}
	resp.write(w)
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, id string) (*response, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "body too large")
	} else if err != nil {
		return nil, refuse(http.StatusBadRequest, "body: "+err.Error())
	}
	path, err := decodePath(r.URL.EscapedPath())
	if err != nil {
		return nil, refuse(http.StatusBadRequest, err.Error())
	}
	route, params := g.route(r.Method, path)
	if route == nil {
		return nil, refuse(http.StatusNotFound, "no route")
	}
	if !route.Throttle.admit(time.Now()) {
		return nil, refuse(http.StatusTooManyRequests, "route throttled")
	}
	var authorizer map[string]any
	if g.Authorizer != nil && !route.Public {
		if authorizer, err = g.Authorizer(r, body); err != nil {
			return nil, err
		}
	}
	e := newEvent(r, body, path)
	e.RouteKey, e.PathParameters = route.Key, params
	c := &e.Context
	c.RouteKey, c.Stage, c.RequestID, c.Authorizer = route.Key, cmp.Or(g.Stage, "$default"), id, authorizer
	event, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("gateway: event: %w", err)
	}
	// The function outlives this context: it runs to its end for a client that
	// has gone, and its answer is dropped.
	timeout := cmp.Or(g.Timeout, integrationTimeout)
	late := refuse(http.StatusServiceUnavailable, "integration timeout")
	ctx, cancel := context.WithTimeoutCause(r.Context(), timeout, late)
	defer cancel()
	payload, err := route.Lambda.Invoke(ctx, event)
	if err != nil {
		return nil, err
	}
	return parseResponse(payload)
}

// failure is the answer to a request that no function answered. Everything that
// goes wrong behind the gateway is a 500: a function that failed, ended, timed
// out by its own limit or answered nonsense. So is a Lambda throttle: for REST
// APIs a 500 has been observed, for HTTP APIs AWS documents nothing better, and
// in no case is it passed on as 429. Only the gateway's own wait ends in 503.
func failure(err error) *response {
	refusal := refuse(http.StatusInternalServerError, "")
	errors.As(err, &refusal)
	resp := &response{
		status: refusal.Status,
		header: http.Header{"Content-Type": {"application/json"}},
		body:   fmt.Appendf(nil, `{"message":%q}`, http.StatusText(refusal.Status)),
	}
	if refusal.Challenge != "" {
		resp.header.Set("Www-Authenticate", refusal.Challenge)
	}
	return resp
}

// requestID returns an id of the form that HTTP APIs use: 15 characters and "=".
func requestID() string {
	var b [11]byte
	rand.Read(b[:]) // never fails
	return base64.URLEncoding.EncodeToString(b[:])
}
