package httplease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// transport is a network of one function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answering(status int, contentType, body string) *httplease.Client {
	return over(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
			Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	})
}

func over(f transport) *httplease.Client {
	return &httplease.Client{URL: "http://pawl.test", HTTP: &http.Client{Transport: f}}
}

// some is a lease to renew, release and break.
var some = lease.Lease{ID: "6Pz1qXw2Qm6ZV8sJc0aB3g", Token: 7}

// outcomes checks what the changing calls fail with, and what the reading one.
func outcomes(t *testing.T, c *httplease.Client, change, read error) {
	t.Helper()
	for _, call := range clientCalls {
		want := change
		if call.name == "get" {
			want = read
		}
		got, err := call.do(t.Context(), c, some, nil)
		if err == nil {
			t.Errorf("%s: got %+v, want %v", call.name, got, want)
			continue
		}
		matching(t, err, want)
	}
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	aLease      = `{"namespace":"payments","lock":"orders/42","token":7,"lease_id":"6Pz1qXw2Qm6ZV8sJc0aB3g","holder":"","ttl_ms":60000,"acquired_at":"2030-01-01T12:00:00.000Z","expires_at":"2030-01-01T12:01:00.000Z","remaining_ms":60000}`
)

// What API Gateway refuses has never been carried out; where it, or a proxy,
// failed, it may have been.
func TestWhatAGatewayAnswersItselfSaysWhatIsKnown(t *testing.T) {
	unknown, unavailable := lease.ErrOutcomeUnknown, lease.ErrUnavailable
	html := "<html><body><h1>504 Gateway Time-out</h1></body></html>"
	for _, a := range []struct {
		status       int
		media, body  string
		change, read error
	}{
		{400, jsonType, `{"message":"Bad Request"}`, lease.ErrInvalid, lease.ErrInvalid},
		{401, jsonType, `{"message":"Unauthorized"}`, lease.ErrForbidden, lease.ErrForbidden},
		{403, jsonType, `{"message":"Forbidden"}`, lease.ErrForbidden, lease.ErrForbidden},
		{403, "text/html", "<h1>WAF</h1>", lease.ErrForbidden, lease.ErrForbidden},
		{404, jsonType, `{"message":"Not Found"}`, lease.ErrMisconfigured, lease.ErrMisconfigured},
		{405, "", "", lease.ErrMisconfigured, lease.ErrMisconfigured},
		{408, "text/plain", "stream timeout", unknown, unavailable},
		{499, "", "", unknown, unavailable},
		{460, "", "", unknown, unavailable}, // of AWS's load balancers: the client has gone
		{418, "", "", unknown, unavailable}, // whatever it means, it was said of a request that may have gone on
		{422, "", "", unknown, unavailable},
		{421, "", "", unavailable, unavailable},
		{425, "", "", unavailable, unavailable},
		{413, jsonType, `{"message":"Request Too Long"}`, lease.ErrInvalid, lease.ErrInvalid},
		{429, jsonType, `{"message":"Too Many Requests"}`, lease.ErrThrottled, lease.ErrThrottled},
		{431, "", "", lease.ErrMisconfigured, lease.ErrMisconfigured},
		{500, jsonType, `{"message":"Internal Server Error"}`, unknown, unavailable},
		{502, "", "", unknown, unavailable},
		{503, jsonType, `{"message":"Service Unavailable"}`, unknown, unavailable},
		{504, "text/html", html, unknown, unavailable},
		{504, jsonType, `{"message":"Endpoint request timed out"}`, unknown, unavailable},
		{500, problemType, `{"type":"urn:pawl:problem:outcome_unknown","title":"Internal Server Error","status":500,"detail":"panic","code":"outcome_unknown"}`, unknown, unavailable},
		{503, problemType, `{"code":"outcome_unknown","retry_after_ms":1000}`, unknown, unavailable},
		// A problem that cannot be read, or is someone else's.
		{500, problemType, `{"code":`, unknown, unavailable},
		{500, problemType, `[]`, unknown, unavailable},
		{503, problemType, ``, unknown, unavailable},
		{503, problemType, `{"type":"about:blank","title":"Service Unavailable"}`, unknown, unavailable},
		{502, jsonType, `{"code":"throttled"}`, unknown, unavailable}, // not of the media type, so not ours
		// A success that says nothing.
		{200, "text/html", "<html>log in</html>", unknown, unavailable},
		{200, jsonType, "", unknown, unavailable},
		{200, jsonType, "null", unknown, unavailable},
		{200, jsonType, "[]", unknown, unavailable},
		{200, jsonType, "{}", unknown, unavailable},
		{200, jsonType, `{"ok":true}`, unknown, unavailable},
		{200, jsonType, aLease[:60], unknown, unavailable},
		{200, jsonType, aLease + aLease, unknown, unavailable},
		{200, jsonType, strings.Replace(aLease, "2030-01-01T", "1 January ", 1), unknown, unavailable},
		{200, jsonType, `{"namespace":"payments","lock":"orders/42","state":"stuck","token":7}`, unknown, unavailable},
		{200, jsonType, `{"namespace":"payments","lock":"orders/43","state":"free","token":7}`, unknown, unavailable},
		{200, jsonType, `{"namespace":"refunds","lock":"orders/42","state":"held","token":7}`, unknown, unavailable},
		{204, "", "", unknown, unavailable},
		// Nothing follows a redirect that has no place.
		{304, "", "", lease.ErrMisconfigured, lease.ErrMisconfigured},
	} {
		t.Run(fmt.Sprintf("%d %s %.40s", a.status, a.media, a.body), func(t *testing.T) {
			outcomes(t, answering(a.status, a.media, a.body), a.change, a.read)
		})
	}
}

func TestAThrottledCallKnowsWhenToRepeat(t *testing.T) {
	for status, want := range map[int]error{429: lease.ErrThrottled, 502: lease.ErrOutcomeUnknown, 503: lease.ErrOutcomeUnknown} {
		_, err := answering(status, "", "").Renew(t.Context(), lease.RenewRequest{Name: orders, LeaseID: some.ID, Token: 7, TTL: time.Minute})
		var r *lease.RetryError
		if !errors.As(err, &r) || r.After != time.Second || !errors.Is(err, want) {
			t.Errorf("%d: got %#v, want %v and one second", status, err, want)
		}
	}
}

// Gateways have only the header, and proxies may write a date into it.
func TestRetryAfterCountsAsAHeaderToo(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"30": 30 * time.Second, "0": time.Second, "": time.Second, "soon": time.Second, "-5": time.Second,
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat): time.Hour, "Mon, 02 Jan 2006 15:04:05 GMT": time.Second,
	} {
		for body, media := range map[string]string{`{"code":"throttled"}`: problemType, "busy": "text/plain"} {
			c := over(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 429, Body: io.NopCloser(strings.NewReader(body)), Request: r,
					Header: http.Header{"Content-Type": {media}, "Retry-After": {header}}}, nil
			})
			_, err := c.Get(t.Context(), orders)
			var r *lease.RetryError
			if !errors.As(err, &r) && media == problemType && want == time.Second {
				continue // a problem without a time of its own says no time
			}
			if r == nil || (r.After-want).Abs() > 5*time.Second || !errors.Is(err, lease.ErrThrottled) {
				t.Errorf("%q, %s: got %#v, want ErrThrottled and %v", header, media, err, want)
			}
		}
	}
	both := over(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader(`{"code":"unavailable","retry_after_ms":250}`)), Request: r,
			Header: http.Header{"Content-Type": {problemType}, "Retry-After": {"1"}}}, nil
	})
	_, err := both.Get(t.Context(), orders)
	if r := new(lease.RetryError); !errors.As(err, &r) || r.After != 250*time.Millisecond {
		t.Errorf("got %#v, want the milliseconds of the service, which are exact", err)
	}
}

// A newer service may have codes of its own.
func TestACodeThatIsNotKnownMeansWhatItsStatusSays(t *testing.T) {
	for status, want := range map[int]error{
		400: lease.ErrInvalid, 401: lease.ErrForbidden, 403: lease.ErrForbidden, 404: lease.ErrMisconfigured, 409: lease.ErrMisconfigured,
		410: lease.ErrLost, 413: lease.ErrInvalid, 429: lease.ErrThrottled, 500: lease.ErrOutcomeUnknown, 503: lease.ErrOutcomeUnknown,
	} {
		read := want
		if status >= 500 {
			read = lease.ErrUnavailable
		}
		outcomes(t, answering(status, problemType+"; charset=utf-8", `{"code":"of_tomorrow","status":999,"detail":"?","new":{}}`), want, read)
		_, err := answering(status, problemType, `{"code":"of_tomorrow","retry_after_ms":7000}`).Acquire(t.Context(), lease.AcquireRequest{Name: orders, TTL: time.Minute})
		var r *lease.RetryError
		if !errors.As(err, &r) || r.After != 7*time.Second {
			t.Errorf("%d: got %#v, want a RetryError of 7s", status, err)
		}
	}
}

func TestAGrantWithoutWhatItIsGoodForIsNone(t *testing.T) {
	for old, other := range map[string]string{
		`"token":7,`: ``, `"token":7`: `"token":0`, `"token": 7`: `"token":-1`, `:7,`: `:1000000000000000,`, `:7`: `:"7"`,
		`"lease_id":"6Pz1qXw2Qm6ZV8sJc0aB3g",`: ``, `6Pz1qXw2Qm6ZV8sJc0aB3g`: ``, `"lock":"orders/42"`: `"lock":"orders/43"`, `"payments"`: `"refunds"`,
	} {
		body := strings.Replace(aLease, strings.ReplaceAll(old, " ", ""), other, 1)
		for _, status := range []int{200, 201} {
			l, err := answering(status, jsonType, body).Acquire(t.Context(), lease.AcquireRequest{Name: orders, TTL: time.Minute})
			if !errors.Is(err, lease.ErrOutcomeUnknown) || l != (lease.Lease{}) {
				t.Errorf("%s: got %+v, %v", body, l, err)
			}
		}
	}
	for status, repeated := range map[int]bool{200: true, 201: false} {
		newer := strings.Replace(aLease, `{`, `{"new":{"a":[1]},`, 1)
		if l, err := answering(status, jsonType, newer).Acquire(t.Context(), lease.AcquireRequest{Name: orders, TTL: time.Minute}); err != nil || l.Repeated != repeated || l.Token != 7 {
			t.Errorf("%d with a member of a newer service: got %+v, %v", status, l, err)
		}
	}
}

// Whoever redirects is not the service, and gets neither the lease id nor, from
// the next transport, the credentials.
func TestARedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var strangers int
		login := over(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			if r.URL.Host == "pawl.test" {
				http.Redirect(w, r, "https://login.test/", status)
			} else {
				strangers++
				_, _ = io.WriteString(w, "<html>who are you?</html>")
			}
			a := w.Result()
			a.Request = r
			return a, nil
		})
		outcomes(t, login, lease.ErrMisconfigured, lease.ErrMisconfigured)
		if strangers > 0 || login.HTTP.CheckRedirect != nil {
			t.Errorf("%d: %d calls went to another host", status, strangers)
		}
		// Unless that is what is asked for.
		login.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
		outcomes(t, login, lease.ErrOutcomeUnknown, lease.ErrUnavailable)
	}
}

// What was never sent was never done.
func TestACallThatWasNotSentChangedNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	outcomes(t, &httplease.Client{URL: "http://" + l.Addr().String(), HTTP: new(http.Client)}, lease.ErrUnavailable, lease.ErrUnavailable)
	for _, url := range []string{"", "pawl.test", "/v1", "://", "http://pawl test", "http://[::1"} {
		outcomes(t, &httplease.Client{URL: url}, lease.ErrMisconfigured, lease.ErrMisconfigured)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, call := range clientCalls {
		sent := false
		c := over(func(*http.Request) (*http.Response, error) { sent = true; return nil, io.EOF })
		if _, err := call.do(ctx, c, some, nil); !errors.Is(err, cause) || sent {
			t.Errorf("%s: got %v, sent: %t", call.name, err, sent)
		}
	}
}

func TestACallThatWasSentAndNotAnsweredMayHaveBeenDone(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn){
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0) },
		"closed": func(*net.TCPConn) {},
		"half answered": func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{\"token\":7")
		},
		"half headers": func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 201 Crea") },
		"garbage":      func(c *net.TCPConn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				end(c.(*net.TCPConn))
				c.Close()
			}))
			defer srv.Close()
			outcomes(t, &httplease.Client{URL: srv.URL + "/", HTTP: srv.Client()}, lease.ErrOutcomeUnknown, lease.ErrUnavailable)
		})
	}
}

func TestACallThatTookTooLongMayHaveBeenDone(t *testing.T) {
	silent := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	everyClientCall(t, func(t *testing.T, call clientCall) {
		want := lease.ErrOutcomeUnknown
		if call.name == "get" {
			want = lease.ErrUnavailable
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := call.do(ctx, over(silent), some, nil)
		matching(t, err, want)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: got %v, want DeadlineExceeded", time.Since(start), err)
		}
		c := over(silent)
		c.HTTP.Timeout = 5 * time.Second
		_, err = call.do(t.Context(), c, some, nil)
		matching(t, err, want)
		if time.Since(start) != 8*time.Second {
			t.Errorf("the timeout of the HTTP client took %v", time.Since(start)-3*time.Second)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		_, err = call.do(ctx, over(silent), some, nil)
		matching(t, err, want)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	})
}
