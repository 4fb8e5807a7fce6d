package apigw

import (
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Request is what API Gateway says about a request beyond HTTP.
type Request struct {
	ID         string    // API Gateway's own, also in its access log
	Time       time.Time // when API Gateway received it, UTC in whole milliseconds; zero when unknown
	SourceIP   string    // the address that connected to API Gateway; X-Forwarded-For has no part in it
	Authorizer Authorizer
}

type requestKey struct{}

// FromContext returns the Request behind the context of an *http.Request that
// [Handler] made, and false for any other context.
func FromContext(ctx context.Context) (Request, bool) {
	r, ok := ctx.Value(requestKey{}).(Request)
	return r, ok
}

// newRequest returns the request that e describes. It fails if the body is not
// the base64 that e says it is.
func newRequest(ctx context.Context, e *Event) (*http.Request, error) {
	rc := &e.RequestContext
	body := e.Body
	if e.IsBase64Encoded {
		b, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}

	header := make(http.Header, len(e.Headers)+1)
	for k, v := range e.Headers {
		header.Set(k, v) // whole: the commas inside ETags and dates look like those between values
	}
	if len(e.Cookies) > 0 {
		header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	host := cmp.Or(header.Get("Host"), rc.DomainName)
	header.Del("Host") // net/http keeps it in Request.Host only

	info := Request{ID: rc.RequestID, SourceIP: rc.HTTP.SourceIP, Authorizer: rc.Authorizer}
	if rc.TimeEpoch != 0 {
		info.Time = time.UnixMilli(rc.TimeEpoch).UTC()
	}
	r := new(http.Request).WithContext(context.WithValue(ctx, requestKey{}, info))
	r.Method = rc.HTTP.Method
	r.URL = &url.URL{Path: e.path(), RawQuery: e.RawQueryString} // never parsed: the path is decoded already
	r.RequestURI = r.URL.RequestURI()
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	if major, minor, ok := http.ParseHTTPVersion(rc.HTTP.Protocol); ok {
		r.Proto, r.ProtoMajor, r.ProtoMinor = rc.HTTP.Protocol, major, minor
	}
	r.Header = header
	r.Host = host
	if rc.HTTP.SourceIP != "" {
		r.RemoteAddr = net.JoinHostPort(rc.HTTP.SourceIP, "0") // the gateway does not tell the port
	}
	r.Body = http.NoBody
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	r.ContentLength = int64(len(body)) // of what the handler reads, whatever the header says
	return r, nil
}

// path returns the part of the path that the gateway matched with its route,
// without the stage or the API mapping in front of it. The event does not say
// which of the two is there, if any, but the route has a number of segments.
func (e *Event) path() string {
	_, pattern, _ := strings.Cut(e.RouteKey, " ")
	wanted, got := strings.Split(pattern, "/"), strings.Split(e.RawPath, "/")
	if front := len(got) - len(wanted); pattern != "" && front >= 0 && e.RawPath[0] == '/' {
		got = append([]string{""}, got[front+1:]...)
		if slices.EqualFunc(wanted, got, matches) {
			return strings.Join(got, "/")
		}
	}
	return routePath(e.RawPath, e.RequestContext.Stage) // the route is $default, or greedy
}

// matches reports whether a segment of a route takes a segment of a path. A
// greedy parameter, {name+}, takes more than one.
func matches(route, got string) bool {
	return route == got || strings.HasPrefix(route, "{") && !strings.HasSuffix(route, "+}")
}

// routePath returns raw without the stage that API Gateway puts in front of it.
func routePath(raw, stage string) string {
	if stage != "" && stage != "$default" {
		if rest, ok := strings.CutPrefix(raw, "/"+stage); ok && (rest == "" || rest[0] == '/') {
			raw = rest
		}
	}
	return cmp.Or(raw, "/")
}
