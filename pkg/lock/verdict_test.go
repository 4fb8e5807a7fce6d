package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// What an error says is the same in the store, behind HTTP, and to the caller of
// the lock.
func TestEveryErrorMeansTheSameThroughEveryLayer(t *testing.T) {
	for _, c := range []struct {
		err, lock error
	}{
		{&lease.HeldError{Holder: "another", Token: 7, Remaining: 400 * time.Millisecond}, lock.ErrHeld},
		{lease.ErrInvalid, lease.ErrInvalid},
		{&lease.ForbiddenError{Reason: "no"}, lease.ErrForbidden},
		{lease.ErrMisconfigured, lock.ErrMisconfigured},
		{&lease.RetryError{Err: lease.ErrThrottled, After: 100 * time.Millisecond}, lock.ErrUndecided},
		{lease.ErrUnavailable, lock.ErrUndecided},
		{lease.ErrClockSkew, lock.ErrUndecided},
		{&lease.RetryError{Err: lease.ErrQuarantine, After: time.Hour}, lock.ErrUndecided},
		{lease.ErrOutcomeUnknown, lock.ErrUndecided},
		{lease.ErrRequestSpent, lock.ErrUndecided}, // another id is tried
		{lease.ErrRequestConflict, lock.ErrUndecided},
		{lease.ErrLost, lease.ErrLost},
		{lease.ErrTokenChanged, lease.ErrTokenChanged},
		{errors.New("of tomorrow"), lock.ErrUndecided},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			s := newStub()
			s.acquire = refuse(c.err)
			srv := httptest.NewServer(&httplease.Handler{Service: s, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone})
			defer srv.Close()
			client := &httplease.Client{URL: srv.URL}
			_, err := client.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: ttl})
			if got, want := lease.Classify(err), lease.Classify(c.err); got != want {
				t.Errorf("behind HTTP %v says %+v, want %+v", err, got, want)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			h, err := (&lock.Client{Service: client}).TryAcquire(ctx, "a/b")
			if h != nil || !errors.Is(err, c.lock) {
				t.Errorf("the caller gets %v, want %v", err, c.lock)
			}
		})
	}
}

// None of them makes a holder of somebody, nor keeps the caller beyond its time.
func TestAServerThatMisbehavesGrantsNothing(t *testing.T) {
	text := func(status int, header, value, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  error
	}{
		"502 html":             {text(502, "Content-Type", "text/html", "<html>bad gateway"), lock.ErrUndecided},
		"503 with Retry-After": {text(503, "Retry-After", "30", ""), lock.ErrUndecided},
		"429 with Retry-After": {text(429, "Retry-After", "30", ""), lease.ErrThrottled},
		"408":                  {text(408, "X", "", ""), lease.ErrOutcomeUnknown},
		"499":                  {text(499, "X", "", ""), lease.ErrOutcomeUnknown},
		"421":                  {text(421, "X", "", ""), lease.ErrUnavailable},
		"425":                  {text(425, "X", "", ""), lease.ErrUnavailable},
		"404 html":             {text(404, "X", "", "<html>"), lock.ErrMisconfigured},
		"403 expired":          {text(403, "X", "", `{"message":"expired"}`), lease.ErrForbidden},
		"a redirect":           {text(302, "Location", "/login", ""), lock.ErrMisconfigured},
		"200 html":             {text(200, "X", "", "<html>login"), lock.ErrUndecided},
		"204":                  {text(204, "X", "", ""), lock.ErrUndecided},
		"another lock's lease": {text(201, "X", "", `{"namespace":"a","lock":"c","token":1,"lease_id":"x"}`), lock.ErrUndecided},
		"a lease without time": {text(201, "X", "", `{"namespace":"a","lock":"b","token":1,"lease_id":"x","remaining_ms":-5}`), lock.ErrUndecided},
		"half a body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"namespace":`))
			panic(http.ErrAbortHandler)
		}, lock.ErrUndecided},
		"a connection that ends": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, lock.ErrUndecided},
		"a body without an end": {func(w http.ResponseWriter, _ *http.Request) {
			for block := make([]byte, 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, lock.ErrUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(c.serve)
			defer srv.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			started := time.Now()
			h, err := (&lock.Client{Service: &httplease.Client{URL: srv.URL}}).Acquire(ctx, "a/b")
			if h != nil || !errors.Is(err, c.want) || time.Since(started) > 3*time.Second {
				t.Errorf("got %v, %v after %v, want %v", h, err, time.Since(started), c.want)
			}
		})
	}
	srv := httptest.NewServer(text(201, "X", "", fmt.Sprintf(`{"namespace":"a","lock":"b","token":1,"lease_id":"x","remaining_ms":%d}`, int64(1e12))))
	defer srv.Close()
	h, err := (&lock.Client{Service: &httplease.Client{URL: srv.URL}}).Acquire(t.Context(), "a/b")
	if err != nil || time.Until(h.Deadline()) > ttl {
		t.Fatalf("got %v, trusted for %v, want a TTL at most", err, time.Until(h.Deadline()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = h.Release(ctx) // such a server releases nothing either
}
