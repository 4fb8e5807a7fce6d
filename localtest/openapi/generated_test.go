package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

const specFile = "../../pkg/lease/httplease/openapi.json"

// A line is what generated.py says of one call.
type line struct {
	Case, Call, Type, Code, Message, State, Failed string
	Status                                         int
	New                                            any
}

// ask generates a Python client, and lets it make every call in each case.
func ask(t *testing.T, cases map[string]http.Handler) (lines []line) {
	t.Helper()
	py := localtest.PythonForTest(t, "generator.txt")
	dir := t.TempDir()
	quiet := filepath.Join(dir, "config.json") // no linter is run over what is generated
	if err := os.WriteFile(quiet, []byte(`{"post_hooks": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	said := run(t, exec.CommandContext(t.Context(), py, "-m", "openapi_python_client", "generate", "--path", specFile,
		"--meta", "none", "--output-path", filepath.Join(dir, "pawl"), "--config", quiet, "--fail-on-warning"))
	t.Log(said)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(r.URL.Path[1:], "/")
		http.StripPrefix("/"+name, cases[name]).ServeHTTP(w, r)
	}))
	defer srv.Close()
	cmd := exec.CommandContext(t.Context(), py, append([]string{"generated.py", srv.URL}, slices.Sorted(maps.Keys(cases))...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	for text := range strings.Lines(run(t, cmd)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 7*len(cases) {
		t.Fatalf("%d lines of %d cases", len(lines), len(cases))
	}
	return lines
}

func answering(status int, media, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func serving(s lease.Service) *httplease.Handler {
	return &httplease.Handler{Service: s, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
}

// failing is a service that answers everything with one error.
type failing struct{ err error }

func (f failing) Acquire(context.Context, lease.AcquireRequest) (lease.Lease, error) {
	return lease.Lease{}, f.err
}
func (f failing) Renew(context.Context, lease.RenewRequest) (lease.Lease, error) {
	return lease.Lease{}, f.err
}
func (f failing) Release(context.Context, lease.ReleaseRequest) (lease.State, error) {
	return lease.State{}, f.err
}
func (f failing) Break(context.Context, lease.BreakRequest) (lease.Broken, error) {
	return lease.Broken{}, f.err
}
func (f failing) Get(context.Context, lease.Name) (lease.State, error) { return lease.State{}, f.err }

// What API Gateway answers by itself is the unknown outcome, among others: a
// client that fails in its own way there cannot be told what to do.
func TestAGeneratedClientReadsWhatAPIGatewayAnswers(t *testing.T) {
	cases := make(map[string]http.Handler)
	for _, status := range []int{400, 401, 403, 404, 413, 429, 500, 502, 503, 504} {
		cases[fmt.Sprint(status)] = answering(status, "application/json", `{"message":"`+http.StatusText(status)+`"}`)
	}
	for _, l := range ask(t, cases) {
		if l.Failed != "" || l.Type != "Problem" && l.Type != "Gateway" || fmt.Sprint(l.Status) != l.Case || l.Message != http.StatusText(l.Status) {
			t.Errorf("%+v", l)
		}
	}
}

func TestAGeneratedClientReadsEveryProblem(t *testing.T) {
	cases := make(map[string]http.Handler)
	for code, err := range map[string]error{
		httplease.OutcomeHeld:             &lease.HeldError{Holder: "worker-1", Token: 7, Remaining: time.Second},
		httplease.OutcomeRequestSpent:     lease.ErrRequestSpent,
		httplease.OutcomeRequestConflict:  lease.ErrRequestConflict,
		httplease.OutcomeTokenChanged:     &lease.TokenChangedError{Token: 8},
		httplease.OutcomeExpired:          lease.ErrExpired,
		httplease.OutcomeLost:             lease.ErrLost,
		httplease.OutcomeInvalid:          &lease.InvalidError{Field: "ttl_ms", Reason: "is odd"},
		httplease.OutcomeForbidden:        &lease.ForbiddenError{Reason: "no"},
		httplease.OutcomeThrottled:        &lease.RetryError{Err: lease.ErrThrottled, After: time.Second},
		httplease.OutcomeTooManyWithdrawn: lease.ErrTooManyWithdrawn,
		httplease.OutcomeMisconfigured:    lease.ErrMisconfigured,
		httplease.OutcomeUnavailable:      &lease.RetryError{Err: lease.ErrUnavailable, After: time.Second},
		httplease.OutcomeClockSkew:        &lease.RetryError{Err: lease.ErrClockSkew, After: time.Second},
		httplease.OutcomeQuarantine:       &lease.RetryError{Err: lease.ErrQuarantine, After: time.Hour},
		httplease.OutcomeUnknown:          lease.ErrOutcomeUnknown,
	} {
		cases[code] = serving(failing{err})
	}
	h := serving(new(memlease.Store))
	for code, change := range map[string]func(*http.Request){
		httplease.OutcomeNotFound:         func(r *http.Request) { r.URL.Path = "/nothing" },
		httplease.OutcomeMethodNotAllowed: func(r *http.Request) { r.Method = http.MethodPut },
		httplease.OutcomeTooLarge:         func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(strings.Repeat(" ", 20_000))) },
	} {
		cases[code] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			h.ServeHTTP(w, r)
		})
	}
	for _, code := range codes(t) {
		if cases[code] == nil {
			t.Errorf("%s is not tried", code)
		}
	}
	// A newer service.
	cases["of_tomorrow"] = answering(409, "application/problem+json", `{"type":"urn:x","title":"Conflict","status":409,"detail":"?","code":"of_tomorrow","new":[1]}`)
	for _, l := range ask(t, cases) {
		switch {
		case l.Failed != "":
			t.Errorf("%+v", l)
		case l.Call == "healthz" || l.Call == "spec":
		case l.Type != "Problem" || l.Code != l.Case || l.Status < 400:
			t.Errorf("%+v", l)
		}
	}
}

// codes are those that the spec knows.
func codes(t *testing.T) []string {
	text, err := os.ReadFile(specFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct {
						Code struct {
							Known []string `json:"x-extensible-enum"`
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	known := doc.Components.Schemas.Problem.Properties.Code.Known
	if len(known) < 10 {
		t.Fatalf("the spec has the codes %q", known)
	}
	return known
}

func TestAGeneratedClientTakesALockAndGivesItUp(t *testing.T) {
	want := []line{
		{Call: "acquire", Type: "Lease", Status: 201},
		{Call: "renew", Type: "Lease", Status: 200},
		{Call: "read", Type: "State", Status: 200, State: "held"},
		{Call: "release", Type: "State", Status: 200, State: "free"},
		{Call: "break", Type: "Broken", Status: 200, State: "free"},
		{Call: "healthz", Type: "Health", Status: 200},
		{Call: "spec", Type: "SpecResponse200", Status: 200},
	}
	h := serving(new(memlease.Store))
	newer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		maps.Copy(w.Header(), a.Header())
		w.WriteHeader(a.Code)
		_, _ = io.WriteString(w, strings.Replace(a.Body.String(), "{", `{"new":{"a":[1]},`, 1))
	})
	for i, l := range ask(t, map[string]http.Handler{"now": serving(new(memlease.Store)), "tomorrow": newer}) {
		if (l.New != nil) != (l.Case == "tomorrow") {
			t.Errorf("%+v", l)
		}
		w := want[i%len(want)]
		if w.Case, w.New = l.Case, l.New; fmt.Sprint(l) != fmt.Sprint(w) {
			t.Errorf("got %+v, want %+v", l, w)
		}
	}
}
