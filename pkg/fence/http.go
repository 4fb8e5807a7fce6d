package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// A Transport is an [http.RoundTripper] that sends the token of a request's
// context along, if it has one.
type Transport struct {
	// Base sends the requests. Nil means [http.DefaultTransport].
	Base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	lock, token := FromContext(r.Context())
	if token == 0 {
		return base.RoundTrip(r)
	}
	value, err := FormatHeader(lock, token)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, value)
	return base.RoundTrip(r)
}

// A Handler puts the token of a request into its context. A request whose token
// is nonsense, or is given twice, is answered 400 and goes no further.
type Handler struct {
	// Next serves the requests. Required.
	Next http.Handler

	// Required says that a request without a token is answered 428, and goes no
	// further either.
	Required bool
}

// ServeHTTP implements [http.Handler].
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch values := r.Header.Values(Header); {
	case len(values) == 1:
		lock, token, err := ParseHeader(values[0])
		if err != nil {
			writeProblem(w, problem{Status: http.StatusBadRequest, Code: "invalid", Detail: err.Error()})
			return
		}
		r = r.WithContext(NewContext(r.Context(), lock, token))
	case len(values) > 1:
		writeProblem(w, problem{Status: http.StatusBadRequest, Code: "invalid", Detail: Header + " is given twice"})
		return
	case h.Required:
		writeProblem(w, problem{Status: http.StatusPreconditionRequired, Code: "token_required", Detail: Header + " is missing"})
		return
	}
	h.Next.ServeHTTP(w, r)
}

// A problem is an error on the wire, as in RFC 9457.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	Lock       string `json:"lock,omitzero"`
	Token      Token  `json:"token,omitzero"`
	Seen       Token  `json:"seen,omitzero"`
	Bound      string `json:"bound,omitzero"`
	Resource   string `json:"resource,omitzero"`
	NotApplied bool   `json:"not_applied,omitzero"`
}

// Codes of the two refusals.
const (
	codeStale = "stale_token"
	codeOther = "other_lock"
)

// WriteRefusal answers a request with 409 and the code "stale_token" if err is a
// [StaleError], or "other_lock" if it is an [OtherLockError], and reports whether
// it was one of them.
func WriteRefusal(w http.ResponseWriter, err error) bool {
	var stale *StaleError
	var other *OtherLockError
	switch {
	case errors.As(err, &stale):
		writeProblem(w, problem{
			Status: http.StatusConflict, Code: codeStale, Detail: stale.Error(), NotApplied: stale.NotApplied,
			Lock: stale.Lock, Token: stale.Token, Seen: stale.Seen, Resource: stale.Resource,
		})
	case errors.As(err, &other):
		writeProblem(w, problem{
			Status: http.StatusConflict, Code: codeOther, Detail: other.Error(), NotApplied: other.NotApplied,
			Lock: other.Lock, Bound: other.Bound, Resource: other.Resource,
		})
	default:
		return false
	}
	return true
}

func writeProblem(w http.ResponseWriter, p problem) {
	p.Type, p.Title = "urn:pawl:problem:"+p.Code, http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the status is sent; a broken pipe is the client's to notice
}

// maxProblem is more than any problem has.
const maxProblem = 64 << 10

// ReadRefusal returns the [StaleError] or [OtherLockError] that a response is, or
// nil if it is none. It reads the body only of a 409 that is a problem; if that is
// another one, it returns an error that has what the body said.
func ReadRefusal(r *http.Response) error {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.StatusCode != http.StatusConflict || media != "application/problem+json" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("fence: read the problem: %w", err)
	}
	var p problem
	if err := json.Unmarshal(text, &p); err == nil {
		switch p.Code {
		case codeStale:
			return &StaleError{Lock: p.Lock, Token: p.Token, Seen: p.Seen, Resource: p.Resource, NotApplied: p.NotApplied}
		case codeOther:
			return &OtherLockError{Lock: p.Lock, Bound: p.Bound, Resource: p.Resource, NotApplied: p.NotApplied}
		}
	}
	return fmt.Errorf("fence: %s: %.200q", r.Status, text)
}
