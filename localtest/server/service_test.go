package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
)

// serve starts the whole service with the given settings, each "NAME", "value",
// and returns its address.
func serve(t *testing.T, env ...string) (url string, _ *log) {
	t.Helper()
	return serveOn(t, localtest.DynamoDBForTest(t).Endpoint, env...)
}

// serveOn starts it on the DynamoDB at an endpoint.
func serveOn(t *testing.T, endpoint string, env ...string) (url string, _ *log) {
	t.Helper()
	set := map[string]string{"TABLE": "table-" + lease.NewID()}
	for i := 0; i < len(env); i += 2 {
		set[env[i]] = env[i+1]
	}
	t.Setenv("DYNAMODB_ENDPOINT", endpoint) // for package localtest
	s := settings{getenv: func(name string) string { return set[name] }}
	log := new(log)
	service, err := s.start(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the service:\n%s", log.String())
		}
		if err := service.close(); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(service.handler)
	t.Cleanup(server.Close)
	return server.URL, log
}

func client(url string, transport http.RoundTripper) *httplease.Client {
	return &httplease.Client{URL: url, HTTP: &http.Client{Transport: transport, Timeout: 40 * time.Second}}
}

// connections lets many callers keep theirs.
func connections() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 128}
}

// A log keeps what the service logs.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestTheServiceKeepsThePromises(t *testing.T) {
	url, _ := serve(t, "THROTTLE", "off") // it tests the service, and not what a deployment lets in
	c := client(url, connections())
	// In a group of their own, so that the service outlives the parallel ones.
	t.Run("promises", func(t *testing.T) {
		leasetest.Run(t, func(*testing.T) lease.Service { return c })
	})
}

func TestSixtyFourCallersNeverHoldOneLockAtOnce(t *testing.T) {
	url, _ := serve(t, "THROTTLE", "off") // they come at once, each time that a lease ends
	for round := range rigor.Rounds(t) {
		h := leasetest.Hammer{
			Service: client(url, connections()),
			Name:    lease.Name{Namespace: "hammer", Lock: lease.NewID()},
			Callers: 64, TTL: 2 * time.Second, Wait: 2 * time.Second, Abandon: .01,
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		history := h.Run(ctx)
		cancel()
		granted, refused := 0, 0
		for _, op := range history.Ops() {
			switch {
			case op.Err == nil && op.Kind == leasetest.Acquire:
				granted++
			case op.Err == nil, errors.Is(op.Err, lease.ErrHeld):
				refused++
			case errors.Is(op.Err, lease.ErrLost):
				// A holder that was slower than its lease.
			default:
				t.Errorf("round %d: %s by caller %d was not answered: %v", round, op.Kind, op.Caller, op.Err)
			}
		}
		if granted < 100 {
			t.Errorf("round %d: only %d grants in 20s", round, granted)
		}
		if err := history.Check(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		t.Logf("round %d: %d operations, %d grants", round, len(history.Ops()), granted)
	}
}

// The line as the deployed function writes it, with its metrics.
func TestACallLogsAtMost4KBWhateverACallerWrites(t *testing.T) {
	url, log := serve(t, "THROTTLE", "off")
	n := 0
	for _, text := range []string{strings.Repeat("\u2028", 5000), strings.Repeat(`\u0000`, 2500), strings.Repeat(`\"`, 255), strings.Repeat("\u202e", 85), strings.Repeat("\u00ad", 127)} {
		for action, body := range map[string]string{
			"acquire": `{"lock":"%s","ttl_ms":1000,"holder":"%[1]s"}`,
			"renew":   `{"lock":"%s","ttl_ms":1000,"lease_id":"0000000000000000000000","token":5}`,
			"read":    `{"lock":"%s"}`,
			"break":   `{"lock":"%s","token":999999999999999,"reason":"%[1]s"}`,
		} {
			for _, namespace := range []string{"payments", strings.Repeat("x", 63), strings.Repeat("%E2%80%AE", 60)} {
				a, err := http.Post(url+"/v1/"+namespace+"/"+action, "application/json", strings.NewReader(fmt.Sprintf(body, text)))
				if err != nil {
					t.Fatal(err)
				}
				a.Body.Close()
				n++
			}
		}
	}
	lines := 0
	for line := range strings.Lines(log.String()) {
		if lines++; len(line) > 4096 || !json.Valid([]byte(line)) || strings.ContainsAny(line, "\u2028\u202e\u00ad") {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
	if lines < n {
		t.Errorf("%d lines of %d calls", lines, n)
	}
}
