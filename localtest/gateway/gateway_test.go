package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// newGateway serves one function at "ANY /{proxy+}".
func newGateway(t *testing.T) (*Gateway, gate, *httptest.Server) {
	l, gate := newLambda(t)
	g := &Gateway{Routes: []Route{{Key: "ANY /{proxy+}", Lambda: l}}}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	return g, gate, srv
}

// get gets a URL and returns the answer with its body.
func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// wantMessage checks an answer that the gateway gives itself.
func wantMessage(t *testing.T, resp *http.Response, body string, status int, message string) {
	t.Helper()
	if want := `{"message":"` + message + `"}`; resp.StatusCode != status || body != want {
		t.Errorf("got %d %s, want %d %s", resp.StatusCode, body, status, want)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	if got := resp.Header.Get("apigw-requestid"); !regexp.MustCompile(`^[\w-]{15}=$`).MatchString(got) {
		t.Errorf("apigw-requestid %q", got)
	}
}

func TestARequestWithoutARouteIsNotFound(t *testing.T) {
	t.Parallel()
	g := &Gateway{Routes: []Route{{Key: "GET /v1/{namespace}/lock"}}}
	srv := httptest.NewServer(g)
	defer srv.Close()
	resp, body := get(t, srv.URL+"/v1/payments/locks")
	wantMessage(t, resp, body, 404, "Not Found")
	resp, err := http.Post(srv.URL+"/v1/payments/lock", "", nil) // there is no 405
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("another method: %s", resp.Status)
	}
}

func TestWhatTheAuthorizerRefusesDoesNotReachTheFunction(t *testing.T) {
	t.Parallel()
	g, _, srv := newGateway(t)
	public := Route{Key: "GET /healthz", Public: true, Lambda: g.Routes[0].Lambda}
	g.Routes = append(g.Routes, public)
	key := &testKeys()[0].PublicKey

	g.Authorizer = IAM("us-east-1", alice)
	resp, body := get(t, srv.URL+"/v1?do=exit")
	wantMessage(t, resp, body, 403, "Forbidden")
	if resp, body := get(t, srv.URL+"/healthz"); resp.StatusCode != 200 || strings.Contains(body, "authorizer") {
		t.Errorf("public route: %s %s", resp.Status, body)
	}

	g.Authorizer = JWT(issuer, []string{"pawl"}, key)
	resp, body = get(t, srv.URL+"/v1?do=exit")
	wantMessage(t, resp, body, 401, "Unauthorized")
	if got := resp.Header.Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("WWW-Authenticate %q", got)
	}
}

func TestAThrottledRouteAnswersTooManyRequests(t *testing.T) {
	t.Parallel()
	g, _, srv := newGateway(t)
	for i := range g.Routes {
		g.Routes[i].Throttle = &Throttle{Burst: 2, Rate: 1e-6}
	}
	for range 2 {
		if resp, _ := get(t, srv.URL+"/v1"); resp.StatusCode != 200 {
			t.Errorf("within the burst: %s", resp.Status)
		}
	}
	resp, body := get(t, srv.URL+"/v1?do=exit")
	wantMessage(t, resp, body, 429, "Too Many Requests")
}

func TestTheBurstRefillsAtTheRate(t *testing.T) {
	t.Parallel()
	throttle := &Throttle{Rate: 2, Burst: 3}
	now := time.Now()
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{
		{0, true}, {0, true}, {0, true}, {0, false}, // the burst
		{400 * time.Millisecond, false}, {100 * time.Millisecond, true}, {0, false}, // one in half a second
		{time.Hour, true}, {0, true}, {0, true}, {0, false}, // no more than the burst
	} {
		now = now.Add(c.after)
		if got := throttle.admit(now); got != c.want {
			t.Errorf("request %d: %v, want %v", i, got, c.want)
		}
	}
}

func TestABodyOverTenMegabytesIsTooLarge(t *testing.T) {
	t.Parallel()
	g := &Gateway{}
	for size, status := range map[int]int{10 << 20: 404, 10<<20 + 1: 413} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest("POST", "/", bytes.NewReader(make([]byte, size))))
		wantMessage(t, w.Result(), w.Body.String(), status, http.StatusText(status))
	}
}

func TestAFunctionThatFailsIsAnInternalServerError(t *testing.T) {
	t.Parallel()
	_, _, srv := newGateway(t)
	for name, query := range map[string]string{
		"an error":              "do=error",
		"a panic":               "do=panic",
		"an exit":               "do=exit",
		"no status":             "do=return&arg=" + url.QueryEscape(`{"statusCode":0}`),
		"a null status":         "do=return&arg=" + url.QueryEscape(`{"statusCode":null}`),
		"a status in text":      "do=return&arg=" + url.QueryEscape(`{"statusCode":"200"}`),
		"a status beyond":       "do=return&arg=" + url.QueryEscape(`{"statusCode":600}`),
		"headers that are none": "do=return&arg=" + url.QueryEscape(`{"statusCode":200,"headers":{"a":["b"]}}`),
		"base64 that is none":   "do=return&arg=" + url.QueryEscape(`{"statusCode":200,"body":"!","isBase64Encoded":true}`),
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, srv.URL+"/v1?"+query)
			wantMessage(t, resp, body, 500, "Internal Server Error")
			if resp, body := get(t, srv.URL+"/v1?do=pid"); resp.StatusCode != 200 {
				t.Errorf("the next call: %s %s", resp.Status, body)
			}
		})
	}
}

func TestAThrottledFunctionIsAnInternalServerError(t *testing.T) {
	t.Parallel()
	g, gate, srv := newGateway(t)
	g.Routes[0].Lambda.Concurrency = 1
	first := invokeLater(t, g.Routes[0].Lambda, `{"do":"gate"}`)
	v := gate.next(t)
	resp, body := get(t, srv.URL+"/v1")
	wantMessage(t, resp, body, 500, "Internal Server Error")
	v.pass(t)
	if a := <-first; a.err != nil {
		t.Error(a.err)
	}
}

func TestATimeoutOfTheFunctionIsAnInternalServerError(t *testing.T) {
	t.Parallel()
	g, _, srv := newGateway(t)
	g.Routes[0].Lambda.Timeout = 100 * time.Millisecond
	resp, body := get(t, srv.URL+"/v1?do=gate")
	wantMessage(t, resp, body, 500, "Internal Server Error")
}

func TestATimeoutOfTheGatewayIsServiceUnavailableAndTheFunctionGoesOn(t *testing.T) {
	t.Parallel()
	g, gate, srv := newGateway(t)
	g.Timeout = 100 * time.Millisecond
	resp, body := get(t, srv.URL+"/v1?do=gate")
	wantMessage(t, resp, body, 503, "Service Unavailable")
	gate.next(t).pass(t)
}

func TestTheFunctionGoesOnForAClientThatHasGone(t *testing.T) {
	t.Parallel()
	_, gate, srv := newGateway(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/v1?do=gate", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
			t.Error("the client got an answer")
		}
	}()
	v := gate.next(t)
	cancel()
	<-gone
	srv.Close() // returns when the gateway has let go of the request
	v.pass(t)
}

func TestTheLogSaysWhatTheClientIsNotTold(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	g := &Gateway{
		Routes:     []Route{{Key: "GET /v1"}},
		Authorizer: IAM("us-east-1", alice),
		Log:        slog.New(slog.NewJSONHandler(&log, nil)),
	}
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1", nil))
	var record struct {
		Status int
		Error  string
	}
	if err := json.Unmarshal(log.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if record.Status != 403 || record.Error != "gateway: signature: 0 Authorization headers" {
		t.Errorf("got %s", &log)
	}
}

func TestAResponseIsWhatTheFunctionSaid(t *testing.T) {
	t.Parallel()
	_, _, srv := newGateway(t)
	for name, c := range map[string]struct {
		returned, body, contentType string
		status                      int
		header                      http.Header
	}{
		"everything": {
			`{"statusCode":409,"headers":{"content-type":"application/problem+json","retry-after":"1","Connection":"close","content-length":"99"},"cookies":["a=1; Secure","b=2"],"body":"{}"}`,
			"{}", "application/problem+json", 409, http.Header{"Retry-After": {"1"}, "Set-Cookie": {"a=1; Secure", "b=2"}},
		},
		"a status alone":      {`{"statusCode":204,"headers":{"content-length":"9"}}`, "", "text/plain; charset=utf-8", 204, nil},
		"text":                {`{"statusCode":200,"body":"hé"}`, "hé", "text/plain; charset=utf-8", 200, nil},
		"bytes":               {`{"statusCode":200,"body":"AP8=","isBase64Encoded":true}`, "\x00\xff", "text/plain; charset=utf-8", 200, nil},
		"inferred, an object": {`{"lock":"a"}`, `{"lock":"a"}`, "application/json", 200, nil},
		"inferred, a list":    {`[1,2]`, `[1,2]`, "application/json", 200, nil},
		"inferred, a string":  {`"he\"llo"`, `he"llo`, "application/json", 200, nil},
		"inferred, null":      {`null`, `null`, "application/json", 200, nil},
		"inferred, not JSON":  {`{"lock":`, `{"lock":`, "application/json", 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, srv.URL+"/v1?do=return&arg="+url.QueryEscape(c.returned))
			if resp.StatusCode != c.status || body != c.body || resp.Header.Get("Content-Type") != c.contentType {
				t.Errorf("got %d %q of type %q, want %d %q of type %q",
					resp.StatusCode, body, resp.Header.Get("Content-Type"), c.status, c.body, c.contentType)
			}
			if resp.ContentLength != int64(len(c.body)) || c.status == 204 && resp.Header.Get("Content-Length") != "" || resp.Close {
				t.Errorf("Content-Length %d, header %v, close %v", resp.ContentLength, resp.Header, resp.Close)
			}
			for name, want := range c.header {
				if got := resp.Header[name]; strings.Join(got, "|") != strings.Join(want, "|") {
					t.Errorf("%s %q, want %q", name, got, want)
				}
			}
		})
	}
}
