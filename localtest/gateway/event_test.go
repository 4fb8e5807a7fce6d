package gateway

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// The whole event of a request, as it was on the wire.
func TestAnEventTellsAllOfARequest(t *testing.T) {
	t.Parallel()
	l, _ := newLambda(t)
	g := &Gateway{Routes: []Route{{Key: "POST /v1/{namespace}/acquire", Lambda: l}}}
	g.Authorizer = func(*http.Request, []byte) (map[string]any, error) {
		return map[string]any{"jwt": map[string]any{"claims": map[string]string{"sub": "alice"}, "scopes": nil}}, nil
	}
	srv := httptest.NewServer(g)
	defer srv.Close()
	before := time.Now()
	payload := send(t, srv, "POST /v1/pay%20ments/acquire?b=2&a=x%20y&a=%2C+z&flag&bad=%zz& HTTP/1.1\r\n"+
		"Host: abc.example.com\r\nContent-Type: application/json\r\nX-Many: one\r\nx-many: two, three\r\n"+
		"Cookie: a=1; b=2\r\nCookie: c=3\r\nUser-Agent: test/1\r\nX-Forwarded-For: 203.0.113.9\r\n"+
		"Connection: close\r\nContent-Length: 17\r\n\r\n"+`{"lock":"ééé"}`)
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		t.Fatal(err)
	}

	at := time.UnixMilli(e.RequestContext.TimeEpoch)
	if at.Before(before.Truncate(time.Millisecond)) || at.After(time.Now()) || e.RequestContext.Time != at.UTC().Format("02/Jan/2006:15:04:05 +0000") {
		t.Errorf("time %q, %d", e.RequestContext.Time, e.RequestContext.TimeEpoch)
	}
	if trace := e.Headers["x-amzn-trace-id"]; !regexp.MustCompile(`^Root=1-[0-9a-f]{8}-[0-9a-f]{24}$`).MatchString(trace) {
		t.Errorf("x-amzn-trace-id %q", trace)
	}
	delete(e.Headers, "x-amzn-trace-id")
	want := events.APIGatewayV2HTTPRequest{
		Version:        "2.0",
		RouteKey:       "POST /v1/{namespace}/acquire",
		RawPath:        "/v1/pay ments/acquire",
		RawQueryString: "b=2&a=x%20y&a=%2C+z&flag&bad=%zz&",
		Cookies:        []string{"a=1", "b=2", "c=3"},
		Headers: map[string]string{
			"host": "abc.example.com", "content-type": "application/json", "content-length": "17",
			"x-many": "one,two, three", "user-agent": "test/1",
			"x-forwarded-for": "203.0.113.9,127.0.0.1", "x-forwarded-port": "443", "x-forwarded-proto": "https",
		},
		QueryStringParameters: map[string]string{"b": "2", "a": "x y,, z", "flag": "", "bad": "%zz"},
		PathParameters:        map[string]string{"namespace": "pay ments"},
		Body:                  `{"lock":"ééé"}`,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "POST /v1/{namespace}/acquire", AccountID: account, Stage: "$default", APIID: "local",
			DomainName: "abc.example.com", DomainPrefix: "abc",
			RequestID: e.RequestContext.RequestID, Time: e.RequestContext.Time, TimeEpoch: e.RequestContext.TimeEpoch,
			Authorizer: &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"sub": "alice"}},
			},
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: "POST", Path: "/v1/pay ments/acquire", Protocol: "HTTP/1.1", SourceIP: "127.0.0.1", UserAgent: "test/1",
			},
		},
	}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("got\n%+v\nwant\n%+v", e, want)
	}
}

// send writes a request byte by byte as given and returns the answer's body.
func send(t *testing.T, srv *httptest.Server, request string) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s, %v", resp.Status, body, err)
	}
	return body
}

func TestWhatARequestLacksIsNotInTheEvent(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "/", nil)
	payload, err := json.Marshal(newEvent(r, nil, "/"))
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(payload, &e); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cookies", "queryStringParameters", "pathParameters", "body", "stageVariables"} {
		if value, ok := e[name]; ok {
			t.Errorf("%s is %v", name, value)
		}
	}
	if e["rawQueryString"] != "" || e["isBase64Encoded"] != false {
		t.Errorf("got %s", payload)
	}
	if _, ok := e["requestContext"].(map[string]any)["authorizer"]; ok {
		t.Error("there is an authorizer")
	}
}

// As measured at AWS: https://github.com/ministackorg/ministack/pull/766.
func TestABodyIsBase64UnlessItsTypeIsText(t *testing.T) {
	t.Parallel()
	for contentType, text := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON": true,
		"application/xml": true, "application/javascript": true, "text/plain": true, "text/csv": true,
		"": false, "application/problem+json": false, "application/x-www-form-urlencoded": false,
		"application/octet-stream": false, "image/png": false, "multipart/form-data; boundary=x": false,
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", contentType)
		for _, body := range []string{"{}", "\xff"} {
			e := newEvent(r, []byte(body), "/")
			want, isBase64 := base64.StdEncoding.EncodeToString([]byte(body)), true
			if text && body == "{}" {
				want, isBase64 = body, false
			}
			if e.Body != want || e.IsBase64 != isBase64 {
				t.Errorf("%q of type %q arrived as %q, base64 %v", body, contentType, e.Body, e.IsBase64)
			}
		}
	}
}

func TestTheAuthorizerSaysWhoCalled(t *testing.T) {
	t.Parallel()
	r, body := newSigned(t, role, time.Now(), "https://api.example.com/", "")
	got, err := IAM("us-east-1", role)(r, body)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"accessKey": "ASIAEXAMPLE", "accountId": "210987654321", "callerId": "AROAEXAMPLE:i-1", "userId": "AROAEXAMPLE:i-1",
		"userArn": "arn:aws:sts::210987654321:assumed-role/app/i-1", "cognitoIdentity": nil, "principalOrgId": nil,
	}
	if !reflect.DeepEqual(got, map[string]any{"iam": want}) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// As captured at AWS: https://github.com/hotsock/voker/pull/8.
func TestAPathIsDecodedTwiceAndCutInBetween(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]string{
		"/plain": "/plain", "/space%20value": "/space value", "/question%3Fvalue": "/question", "/hash%23value": "/hash#value",
		"/slash%2Fvalue": "/slash/value", "/unicode-%CE%BB": "/unicode-λ", "/literal%252Fvalue": "/literal/value",
		"/literal%253Fvalue": "/literal?value", "/literal%2525value": "/literal%value", "/plus+value": "/plus+value",
	} {
		if got, err := decodePath(escaped); got != want || err != nil {
			t.Errorf("%s arrives as %q, %v, want %q", escaped, got, err, want)
		}
	}
	g := &Gateway{}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("GET", "/percent%25done", nil))
	wantMessage(t, w.Result(), w.Body.String(), 400, "Bad Request")
}

func TestTheMostSpecificRouteTakesARequest(t *testing.T) {
	t.Parallel()
	keys := []string{"$default", "ANY /v1/{proxy+}", "GET /v1/{proxy+}", "ANY /v1/{ns}/lock", "GET /v1/{ns}/{what}", "GET /v1/{ns}/lock", "GET /v1/status", "GET /"}
	for request, want := range map[string]struct {
		key    string
		params map[string]string
	}{
		"GET /":           {"GET /", nil},
		"GET /v1/status":  {"GET /v1/status", nil},
		"GET /v1/a/lock":  {"GET /v1/{ns}/lock", map[string]string{"ns": "a"}},
		"POST /v1/a/lock": {"ANY /v1/{ns}/lock", map[string]string{"ns": "a"}},
		"GET /v1/a/locks": {"GET /v1/{ns}/{what}", map[string]string{"ns": "a", "what": "locks"}},
		"GET /v1/a":       {"GET /v1/{proxy+}", map[string]string{"proxy": "a"}},
		"GET /v1/a/lock/": {"GET /v1/{proxy+}", map[string]string{"proxy": "a/lock/"}},
		"PUT /v1/a/b/c":   {"ANY /v1/{proxy+}", map[string]string{"proxy": "a/b/c"}},
		"GET /v1//lock":   {"GET /v1/{proxy+}", map[string]string{"proxy": "/lock"}},
		"GET /v1":         {"$default", nil},
		"GET /v1/":        {"$default", nil},
		"POST /":          {"$default", nil},
		"GET /v2/a/lock":  {"$default", nil},
		"GET /V1/a/lock":  {"$default", nil},
		"GET /v1/status/": {"GET /v1/{proxy+}", map[string]string{"proxy": "status/"}},
	} {
		for _, backwards := range []bool{false, true} { // the order of routes says nothing
			g := &Gateway{}
			for i := range keys {
				if backwards {
					i = len(keys) - 1 - i
				}
				g.Routes = append(g.Routes, Route{Key: keys[i]})
			}
			method, path, _ := strings.Cut(request, " ")
			route, params := g.route(method, path)
			if route == nil || route.Key != want.key || !maps.Equal(params, want.params) {
				t.Errorf("%s: %v %v, want %v", request, route, params, want)
			}
		}
	}
}

func TestANamedStageIsTheFirstSegment(t *testing.T) {
	t.Parallel()
	g := &Gateway{Stage: "prod", Routes: []Route{{Key: "GET /"}, {Key: "GET /v1/{ns}"}}}
	for path, want := range map[string]string{
		"/prod/v1/a": "GET /v1/{ns}", "/prod/": "GET /", "/prod": "GET /", "/v1/a": "", "/prodv1/a": "", "/": "",
	} {
		route, _ := g.route("GET", path)
		got := ""
		if route != nil {
			got = route.Key
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
