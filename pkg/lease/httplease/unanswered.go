package httplease

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/internal/connect"
)

// unanswered says what it means that there is no answer that can be read. What
// was not sent was not done, and what only reads does nothing.
func unanswered(action string, sent bool, err error) error {
	kind := lease.ErrOutcomeUnknown
	switch {
	case errors.Is(err, lease.ErrUnavailable), errors.Is(err, lease.ErrMisconfigured): // it was not signed
		return err
	case connect.Untrusted(err):
		kind = lease.ErrMisconfigured
	case !sent, action == reading, connect.Failed(err):
		kind = lease.ErrUnavailable
	}
	return fmt.Errorf("%w: httplease: %w", kind, err)
}

// unread is for a success that cannot be read: what it says was done.
func unread(action string, err error) error {
	return unanswered(action, true, fmt.Errorf("the answer is not what it should be: %w", err))
}

// refusal reads an answer that is no success: a problem of the service, or what
// a gateway or a proxy in front of it said.
func refusal(action string, r *http.Request, a *http.Response, text []byte) error {
	byStatus := func(status int) error {
		err := spoken(action, status)
		if after := retryAfter(a.Header.Get("Retry-After"), time.Now()); after > 0 {
			var retry *lease.RetryError
			if errors.As(err, &retry) {
				err = retry.Err
			}
			return &lease.RetryError{Err: err, After: after}
		}
		return err
	}
	media, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	var p problem
	if media == "application/problem+json" && json.Unmarshal(text, &p) == nil {
		p.Status = a.StatusCode
		if action == reading && p.Code == "outcome_unknown" {
			p.Code = "unavailable" // reading has no outcome
		}
		if p.RetryAfter == nil {
			if after := retryAfter(a.Header.Get("Retry-After"), time.Now()); after > 0 {
				m := millisOf(after)
				p.RetryAfter = &m
			}
		}
		return p.error(byStatus)
	}
	hint := ""
	if a.StatusCode == http.StatusNotFound {
		hint = ` (is Client.URL right, without "/v1"?)`
	}
	return fmt.Errorf("%w: httplease: %s: %s: %.200q%s", byStatus(a.StatusCode), r.URL, a.Status, text, hint)
}

// spoken is what an answer that is none of the service says of the outcome. It
// depends on who says such a thing. What API Gateway refuses never got to the
// service, nor what a proxy says of the request itself, or by a redirect. Anything
// else may be said of a request that was forwarded, and carried out: a 5xx, and a
// 408, 460 or 499, by which proxies tell of time that has run out, or of a client
// that has gone.
func spoken(action string, status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return lease.ErrForbidden
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return lease.ErrInvalid
	case http.StatusGone: // only a service that is newer says this
		return lease.ErrLost
	case http.StatusTooManyRequests:
		return &lease.RetryError{Err: lease.ErrThrottled, After: time.Second}
	case http.StatusMisdirectedRequest, http.StatusTooEarly:
		return &lease.RetryError{Err: lease.ErrUnavailable, After: time.Second}
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusProxyAuthRequired,
		http.StatusConflict, http.StatusLengthRequired, http.StatusRequestURITooLong, http.StatusUnsupportedMediaType,
		http.StatusExpectationFailed, http.StatusUpgradeRequired, http.StatusRequestHeaderFieldsTooLarge:
		return lease.ErrMisconfigured
	}
	if status < 400 {
		return lease.ErrMisconfigured
	}
	if action == reading {
		return &lease.RetryError{Err: lease.ErrUnavailable, After: time.Second}
	}
	return &lease.RetryError{Err: lease.ErrOutcomeUnknown, After: time.Second}
}

// retryAfter reads the header of that name, a number of seconds or a date. It is
// 0 where there is none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
