package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// event is payload format 2.0. What a request does not have is left out, as
// HTTP APIs leave it out.
type event struct {
	Version        string            `json:"version"`
	RouteKey       string            `json:"routeKey"`
	RawPath        string            `json:"rawPath"`
	RawQueryString string            `json:"rawQueryString"`
	Cookies        []string          `json:"cookies,omitempty"`
	Headers        map[string]string `json:"headers"`
	Query          map[string]string `json:"queryStringParameters,omitempty"`
	Context        requestContext    `json:"requestContext"`
	PathParameters map[string]string `json:"pathParameters,omitempty"`
	Body           string            `json:"body,omitempty"`
	IsBase64       bool              `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID    string         `json:"accountId"`
	APIID        string         `json:"apiId"`
	Authorizer   map[string]any `json:"authorizer,omitempty"`
	DomainName   string         `json:"domainName"`
	DomainPrefix string         `json:"domainPrefix"`
	HTTP         httpContext    `json:"http"`
	RequestID    string         `json:"requestId"`
	RouteKey     string         `json:"routeKey"`
	Stage        string         `json:"stage"`
	Time         string         `json:"time"`
	TimeEpoch    int64          `json:"timeEpoch"`
}

type httpContext struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// newEvent returns what a request says by itself; its route has more to say.
func newEvent(r *http.Request, body []byte, path string) *event {
	now := time.Now().UTC()
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		ip = r.RemoteAddr
	}
	prefix, _, _ := strings.Cut(r.Host, ".")
	e := &event{
		Version:        "2.0",
		RawPath:        path,
		RawQueryString: r.URL.RawQuery,
		Headers:        headers(r, len(body), ip, now),
		Query:          query(r.URL.RawQuery),
		Context: requestContext{
			AccountID:    account,
			APIID:        "local",
			DomainName:   r.Host,
			DomainPrefix: prefix,
			HTTP:         httpContext{r.Method, path, r.Proto, ip, r.UserAgent()},
			Time:         now.Format("02/Jan/2006:15:04:05 -0700"),
			TimeEpoch:    now.UnixMilli(),
		},
	}
	for _, line := range r.Header.Values("Cookie") {
		for cookie := range strings.SplitSeq(line, ";") {
			if cookie = strings.TrimSpace(cookie); cookie != "" {
				e.Cookies = append(e.Cookies, cookie)
			}
		}
	}
	e.Body = string(body)
	if len(body) > 0 && !isText(r.Header.Get("Content-Type"), body) {
		e.Body, e.IsBase64 = base64.StdEncoding.EncodeToString(body), true
	}
	return e
}

// isText reports whether a body is delivered as it is. Text is exactly text/*
// and three application types; form data, application/problem+json and a
// missing type are binary, surprising as that is. The list is not documented;
// it was measured against AWS by others.
func isText(contentType string, body []byte) bool {
	t, _, _ := mime.ParseMediaType(contentType)
	switch {
	case !utf8.Valid(body):
		return false
	case strings.HasPrefix(t, "text/"):
		return true
	}
	return t == "application/json" || t == "application/xml" || t == "application/javascript"
}

// headers returns the request's headers with those that the gateway adds. Its
// clients always speak HTTPS, so that is what the function hears.
func headers(r *http.Request, length int, ip string, now time.Time) map[string]string {
	h := map[string]string{}
	for name, values := range r.Header {
		h[strings.ToLower(name)] = strings.Join(values, ",")
	}
	for _, name := range []string{"cookie", "connection", "keep-alive", "te", "trailer", "upgrade", "expect"} {
		delete(h, name)
	}
	h["host"] = r.Host
	h["content-length"] = strconv.Itoa(length)
	h["x-forwarded-for"] = strings.TrimPrefix(h["x-forwarded-for"]+","+ip, ",")
	h["x-forwarded-port"] = "443"
	h["x-forwarded-proto"] = "https"
	if h["x-amzn-trace-id"] == "" {
		h["x-amzn-trace-id"] = traceRoot(now)
	}
	return h
}

// query decodes a query string. What does not decode stays as it is.
func query(raw string) map[string]string {
	q := map[string]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescape(name), unescape(value)
		if earlier, ok := q[name]; ok {
			value = earlier + "," + value
		}
		q[name] = value
	}
	return q
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

func traceRoot(now time.Time) string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("Root=1-%08x-%x", now.Unix(), b)
}
