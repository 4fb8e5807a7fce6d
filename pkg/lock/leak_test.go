package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// settles waits until get returns what it did, or less.
func settles(t *testing.T, what string, want int, get func() int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); get() > want; <-tick.C {
		if time.Now().After(end) {
			t.Errorf("%s: got %d, want %d as before", what, get(), want)
			return
		}
	}
}

func TestAfterTenThousandLocksOverHTTPNothingIsLeft(t *testing.T) {
	m := new(memlease.Store)
	handler := &httplease.Handler{Service: m, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
	var n, open atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch i := n.Add(1); {
		case i%2000 == 0: // a gateway in between has its own words, and wants a second
			http.Error(w, `{"message":"Service Unavailable"}`, http.StatusServiceUnavailable)
		case i%100 == 7: // carried out, and the answer is lost
			handler.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case i%100 == 11: // the connection breaks
			panic(http.ErrAbortHandler)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	server.Start()
	defer server.Close()
	before := runtime.NumGoroutine()

	const workers = 16
	transport := &http.Transport{MaxIdleConnsPerHost: workers}
	c := &lock.Client{Service: &httplease.Client{URL: server.URL, HTTP: &http.Client{Transport: transport}}}
	rounds := 10_000 / workers
	if testing.Short() {
		rounds /= 20
	}
	var granted, cancelled, refused atomic.Int64
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			for i := range rounds {
				name := fmt.Sprintf("a/%d", worker)
				switch {
				case i%100 == 50: // a caller without patience
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					if h, err := c.Acquire(ctx, name); err != nil {
						cancelled.Add(1)
					} else {
						_ = h.Release(ctx) // Observe would be told if it failed
					}
					cancel()
				case i%100 == 75: // a lock that two want
					name = "a/all"
					fallthrough
				default:
					h, err := c.TryAcquire(t.Context(), name)
					switch {
					case err == nil:
						granted.Add(1)
						if err := h.Release(t.Context()); err != nil {
							t.Errorf("release: %v", err)
						}
					case errors.Is(err, lock.ErrHeld), errors.Is(err, lock.ErrUndecided):
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			}
			err := c.Do(t.Context(), fmt.Sprintf("a/%d", worker), func(context.Context, fence.Token) error { return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	t.Logf("%d granted, %d refused, %d without patience, %d requests", granted.Load(), refused.Load(), cancelled.Load(), n.Load())
	settles(t, "goroutines while connections idle", before+3*workers, runtime.NumGoroutine) // 2 for each connection here, 1 there
	transport.CloseIdleConnections()
	settles(t, "connections", 0, func() int { return int(open.Load()) })
	settles(t, "goroutines", before, runtime.NumGoroutine)
}
