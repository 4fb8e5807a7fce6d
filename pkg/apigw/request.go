package apigw

import (
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
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

// path returns what the gateway matched with its route: the pattern of the route
// with the values that the gateway found, without the stage or the API mapping in
// front of it. Only the gateway knows where those end, and it is the gateway that
// has authorized the values: they are never found here.
func (e *Event) path() string {
	_, pattern, _ := strings.Cut(e.RouteKey, " ")
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			value := e.PathParameters[strings.TrimSuffix(name, "}")]
			if value == "" || strings.Contains(value, "/") {
				pattern = "" // a greedy parameter, or a path that was decoded more than once
			}
			segments[i] = value
		}
	}
	if path := strings.Join(segments, "/"); pattern != "" && strings.HasSuffix(e.RawPath, path) {
		return path
	}
	return routePath(e.RawPath, e.RequestContext.Stage)
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
