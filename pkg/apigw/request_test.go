package apigw

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// event reads testdata/name.json.
func event(t testing.TB, name string) Event {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var e Event
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// seen is a request as a handler found it.
type seen struct {
	Method, Path, Query, URI, Proto, Host, Remote, Body string

	Length  int64
	Header  http.Header
	Request Request
}

// receive returns what a handler is given for e.
func receive(t *testing.T, e Event) seen {
	t.Helper()
	var got seen
	res, err := Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		info, ok := FromContext(r.Context())
		if !ok {
			t.Error("the context carries no Request")
		}
		got = seen{r.Method, r.URL.Path, r.URL.RawQuery, r.RequestURI, r.Proto, r.Host, r.RemoteAddr, string(b), r.ContentLength, r.Header, info}
	}))(t.Context(), e)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got status %d, error %v", res.StatusCode, err)
	}
	return got
}

func TestEventsOfTheGatewayArrive(t *testing.T) {
	const host = "abc123.execute-api.eu-west-1.amazonaws.com"
	at := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	for file, want := range map[string]seen{
		"iam-role": {
			Method: "POST", Path: "/v1/payments/acquire", URI: "/v1/payments/acquire", Proto: "HTTP/1.1",
			Host: host, Remote: "203.0.113.7:0", Body: "{\"lock\":\"a/b\",\"ttl_ms\":30000}\r\n\t", Length: 32,
			Header: http.Header{
				"Authorization":   {"AWS4-HMAC-SHA256 Credential=ASIAEXAMPLE/20260301/eu-west-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=0a1b"},
				"Content-Length":  {"32"},
				"Content-Type":    {"application/json"},
				"If-Match":        {`"a,b", "c"`},
				"X-Amz-Date":      {"20260301T120000Z"},
				"X-Forwarded-For": {"198.51.100.9, 203.0.113.7"},
			},
			Request: Request{"JKJaXmPLvHcESHA=", at, "203.0.113.7", Authorizer{userARN: "arn:aws:sts::123456789012:assumed-role/Worker/worker-7"}},
		},
		"iam-user": {
			Method: "GET", Path: "/v1/pay#1?x=%41 100%/lock", Query: "name=a%2Fb&name=c,d&empty",
			URI: "/v1/pay%231%3Fx=%2541%20100%25/lock?name=a%2Fb&name=c,d&empty", Proto: "HTTP/1.1",
			Host: "locks.example.com", Remote: "203.0.113.7:0",
			Header:  http.Header{"Date": {"Sun, 01 Mar 2026 12:00:00 GMT"}},
			Request: Request{"iam-user", at, "203.0.113.7", Authorizer{userARN: "arn:aws:iam::123456789012:user/team/Alice"}},
		},
		"jwt": {
			Method: "GET", Path: "/v1/payments/lock", Query: "name=a", URI: "/v1/payments/lock?name=a", Proto: "HTTP/1.1",
			Host: host, Remote: "203.0.113.7:0",
			Header: http.Header{"Authorization": {"Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln"}},
			Request: Request{"jwt", at, "203.0.113.7", Authorizer{claims: map[string]any{
				"iss": "https://issuer.example.com/", "sub": "client-42", "Sub": "mallory", "SUB": "mallory",
				"scope": "payments/acquire payments/renew", "scp": []any{"payments/release", 7.0},
				"aud": []any{"locks", "billing"}, "email_verified": true, "exp": 1772370000.0, "nested": map[string]any{"sub": "mallory"},
			}}},
		},
		"named-stage": {
			Method: "GET", Path: "/healthz", URI: "/healthz", Proto: "HTTP/1.1",
			Host: host, Remote: "203.0.113.7:0", Header: http.Header{},
			Request: Request{"named-stage", at, "203.0.113.7", Authorizer{}},
		},
		"base64": {
			Method: "PUT", Path: "/upload", URI: "/upload", Proto: "HTTP/1.1",
			Host: host, Remote: "203.0.113.7:0", Body: "\x00\xff\xfehi", Length: 5,
			Header:  http.Header{"Content-Type": {"application/octet-stream"}},
			Request: Request{"base64", at, "203.0.113.7", Authorizer{}},
		},
		"cookies": {
			Method: "GET", Path: "/", URI: "/", Proto: "HTTP/2.0",
			Host: host, Remote: "203.0.113.7:0", Header: http.Header{"Cookie": {"a=1; b=two=2"}},
			Request: Request{"cookies", at, "203.0.113.7", Authorizer{}},
		},
		"ipv6": {
			Method: "GET", Path: "/healthz", URI: "/healthz", Proto: "HTTP/1.1",
			Host: "abc123.execute-api.eu-west-1.api.aws", Remote: "[2001:db8::7]:0", Header: http.Header{},
			Request: Request{"ipv6", time.Time{}, "2001:db8::7", Authorizer{}},
		},
	} {
		t.Run(file, func(t *testing.T) {
			if got := receive(t, event(t, file)); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestOnlyAWholeSegmentIsTheStage(t *testing.T) {
	for _, c := range []struct{ stage, raw, want string }{
		{"prod", "/prod/v1/a", "/v1/a"},
		{"prod", "/prod/prod/a", "/prod/a"},
		{"prod", "/prod/", "/"},
		{"prod", "/prod", "/"},
		{"prod", "/production/a", "/production/a"},
		{"prod", "/v1/a", "/v1/a"}, // through a custom domain
		{"$default", "/$default/a", "/$default/a"},
		{"", "//a", "//a"},
		{"", "", "/"},
	} {
		if got := routePath(c.raw, c.stage); got != c.want {
			t.Errorf("stage %q, path %q: got %q, want %q", c.stage, c.raw, got, c.want)
		}
	}
}

func TestThePathIsWhatTheGatewayMatched(t *testing.T) {
	const acquire = "POST /v1/{namespace}/acquire"
	for _, c := range []struct{ route, namespace, stage, raw, want string }{
		{acquire, "payments", "$default", "/v1/payments/acquire", "/v1/payments/acquire"},
		{acquire, "payments", "$default", "/locks/v1/payments/acquire", "/v1/payments/acquire"}, // an API mapping
		{acquire, "payments", "prod", "/locks/eu/v1/payments/acquire", "/v1/payments/acquire"},  // of two segments
		{acquire, "payments", "prod", "/prod/v1/payments/acquire", "/v1/payments/acquire"},      // a stage
		{acquire, "v1", "v1", "/v1/v1/acquire", "/v1/v1/acquire"},                               // through a domain
		{acquire, "v1", "v1", "/v1/v1/v1/acquire", "/v1/v1/acquire"},                            // and not
		// A namespace that the gateway has not matched is never served.
		{acquire, "team-x/v1/payments", "$default", "/v1/team-x/v1/payments/acquire", "/v1/team-x/v1/payments/acquire"},
		{acquire, "v1/payments", "$default", "/v1/v1/payments/acquire", "/v1/v1/payments/acquire"},
		{acquire, "orders", "$default", "/v1/orders/v1/payments/acquire", "/v1/orders/v1/payments/acquire"},
		{acquire, "", "$default", "/v1/payments/acquire", "/v1/payments/acquire"},
		{acquire, "payments", "$default", "", "/"},
		{"GET /", "", "prod", "/prod/", "/"},
		{"GET /", "", "prod", "/prod", "/"},
		{"GET /healthz", "", "prod", "", "/"},
		{"GET /files/{namespace+}", "a/b", "prod", "/prod/files/a/b", "/files/a/b"},
		{"$default", "", "prod", "/prod/files/a/b", "/files/a/b"},
	} {
		e := Event{RouteKey: c.route, RawPath: c.raw, PathParameters: map[string]string{"namespace": c.namespace, "namespace+": c.namespace}}
		e.RequestContext.Stage = c.stage
		if got := e.path(); got != c.want {
			t.Errorf("%s of %q, stage %q, path %q: got %q, want %q", c.route, c.namespace, c.stage, c.raw, got, c.want)
		}
	}
}

func TestAnEventWithoutRequestContextIsAnonymous(t *testing.T) {
	got := receive(t, Event{Version: "2.0"})
	want := seen{Path: "/", URI: "/", Proto: "HTTP/1.1", Header: http.Header{}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheContextPassesThrough(t *testing.T) {
	type key struct{}
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(context.WithValue(t.Context(), key{}, "kept"), deadline)
	defer cancel()
	_, err := Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if d, _ := r.Context().Deadline(); !d.Equal(deadline) {
			t.Errorf("got deadline %v, want %v", d, deadline)
		}
		if v := r.Context().Value(key{}); v != "kept" {
			t.Errorf("got value %v, want kept", v)
		}
		cancel()
		if r.Context().Err() == nil {
			t.Error("cancelling did not reach the handler")
		}
	}))(ctx, Event{Version: "2.0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := FromContext(ctx); ok {
		t.Error("a context that Handler did not make carries a Request")
	}
}
