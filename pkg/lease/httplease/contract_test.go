package httplease_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

var spec = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		panic(err)
	}
	// The spec leaves answers open, for those of tomorrow. Those of today are all
	// in it, and a problem of ours has all that RFC 9457 and we promise.
	for _, s := range doc.Components.Schemas {
		if s.Value.Type.Is("object") {
			s.Value.AdditionalProperties.Has = new(bool)
		}
	}
	doc.Components.Schemas["Problem"].Value.Required = []string{"type", "title", "status", "detail", "code"}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return doc, router
})

// service returns a client of a handler of s. Every request and answer is held
// against the spec on the way: what the spec refuses the handler must refuse,
// and whatever the handler answers the spec must know.
func service(t *testing.T, s lease.Service) *httplease.Client {
	h := &httplease.Handler{Service: s, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
	return &httplease.Client{URL: "http://pawl.test", HTTP: &http.Client{Transport: contract{t, h}}}
}

// A contract is a network of one handler, without sockets, so that it works in
// a synctest bubble.
type contract struct {
	*testing.T
	h http.Handler
}

func (c contract) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	again := func() *http.Request {
		q := r.Clone(r.Context())
		q.Body, q.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
		return q
	}
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, again())
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	a := w.Result()
	_, router := spec()
	route, params, err := router.FindRoute(again())
	if err != nil {
		if a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusMethodNotAllowed && a.StatusCode != http.StatusBadRequest {
			c.Errorf("%s %s is not in the spec and answered %d", r.Method, r.URL, a.StatusCode)
		}
		return a, nil
	}
	in := &openapi3filter.RequestValidationInput{
		Request: again(), PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil && a.StatusCode < 400 {
		c.Errorf("the spec refuses %s %s %s, and it answered %d: %v", r.Method, r.URL, body, a.StatusCode, err)
	}
	if route.Operation.Responses.Status(a.StatusCode) == nil {
		c.Errorf("%s %s: the spec has %d only as some other status", r.Method, r.URL, a.StatusCode)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: a.StatusCode, Header: a.Header, Options: in.Options}
	out.SetBodyBytes(w.Body.Bytes())
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		c.Errorf("the spec has no such answer to %s %s: %d %s: %v", r.Method, r.URL, a.StatusCode, w.Body, err)
	}
	return a, nil
}

func TestTheSpecHasTheRoutesOfTheHandler(t *testing.T) {
	doc, _ := spec()
	var inSpec, open []string
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			inSpec = append(inSpec, method+" "+path)
			if op.Security != nil && len(*op.Security) == 0 {
				open = append(open, method+" "+path)
			}
		}
	}
	all, public := httplease.Routes()
	for _, list := range [][]string{inSpec, open, all, public} {
		slices.Sort(list)
	}
	if !slices.Equal(all, inSpec) {
		t.Errorf("the handler has %q, the spec %q", all, inSpec)
	}
	if !slices.Equal(public, open) {
		t.Errorf("public are %q in the handler and %q in the spec", public, open)
	}
}

func TestTheSpecHasEveryCode(t *testing.T) {
	doc, _ := spec()
	var codes []string
	for _, c := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Extensions["x-extensible-enum"].([]any) {
		codes = append(codes, c.(string))
	}
	want := httplease.Codes()
	slices.Sort(codes)
	slices.Sort(want)
	if !slices.Equal(codes, want) {
		t.Errorf("the spec has the codes %q, the handler %q", codes, want)
	}
}

// A client that was generated from this spec must survive a newer service.
func TestTheSpecIsOpenForNewMembersAndCodesOfAnswers(t *testing.T) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	requests := []string{"Acquire", "Renew", "Release", "Withdraw", "Break", "Read"}
	for name, s := range doc.Components.Schemas {
		open := s.Value.AdditionalProperties.Has == nil
		if s.Value.Type.Is("object") && open == slices.Contains(requests, name) {
			t.Errorf("%s is open: %t", name, open)
		}
	}
	if p := doc.Components.Schemas["Problem"].Value; p.Properties["code"].Value.Enum != nil || p.Required != nil {
		t.Errorf("problems are closed: %v, %v", p.Properties["code"].Value.Enum, p.Required)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, status := range []string{"400", "401", "403", "404", "413", "429", "500", "503", "default"} {
				if len(status) == 3 && status[0] == '4' && status != "429" && method != "POST" {
					continue // of calls that everyone may make, without a body
				}
				if op.Responses.Value(status) == nil {
					t.Errorf("%s %s has no answer %s", method, path, status)
				} else if method != "HEAD" && op.Responses.Value(status).Value.Content["application/json"] == nil {
					t.Errorf("%s %s has no answer %s of API Gateway", method, path, status)
				}
			}
		}
	}
}

// An operation without an example is one that nobody can try from the page.
func TestEveryOperationOfTheSpecHasExamples(t *testing.T) {
	doc, _ := spec()
	text, _ := os.ReadFile("openapi.json")
	if regexp.MustCompile(`TODO|lorem`).Match(text) {
		t.Error("the spec is not finished")
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Summary == "" {
				t.Errorf("%s %s has no summary", method, path)
			}
			if op.RequestBody != nil && len(op.RequestBody.Value.Content["application/json"].Examples) == 0 {
				t.Errorf("%s %s has no example of a request", method, path)
			}
			for status, answer := range op.Responses.Map() {
				for media, content := range answer.Value.Content {
					if len(content.Examples) == 0 && !strings.HasPrefix(media, "application/openapi") {
						t.Errorf("%s %s has no example of an answer with %s", method, path, status)
					}
				}
			}
		}
	}
}

func TestTheSpecIsServed(t *testing.T) {
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	c := service(t, new(memlease.Store))
	a, err := c.HTTP.Get(c.URL + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if got, _ := io.ReadAll(a.Body); !bytes.Equal(got, want) || a.StatusCode != http.StatusOK {
		t.Errorf("got %d with %d bytes, want the %d bytes of openapi.json", a.StatusCode, len(got), len(want))
	}
}
