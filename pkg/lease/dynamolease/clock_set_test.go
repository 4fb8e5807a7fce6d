package dynamolease_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// dropping answers the next request itself, 500, without carrying it out.
type dropping struct {
	dynamodb.HTTPClient
	next func()
}

func (d *dropping) Do(r *http.Request) (*http.Response, error) {
	if f := d.next; f != nil {
		d.next = nil
		f()
		return &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(`{"__type":"InternalServerError"}`))), Request: r}, nil
	}
	return d.HTTPClient.Do(r)
}

// other is a store on another host, whose clock is right when this one is.
func (h host) other() *dynamolease.Store {
	s := &dynamolease.Store{Table: h.Table, Now: func() time.Time { return h.now }}
	o := h.Client.Options()
	s.Client = following(s, o)
	return s
}

// The clock was behind when the call was opened, and is set right before the
// attempt that is applied: others have an earlier idea of its end.
func TestALeaseIsCountedByTheClockAfterItWasSet(t *testing.T) {
	eachHost(t, func(h host) {
		d := &dropping{HTTPClient: h.liar.HTTPClient}
		h.liar.HTTPClient = d
		h.granted("b")
		right := h.now
		h.now = right.Add(-10 * time.Second)
		d.next = func() { h.now = right }
		q := clocked
		q.TTL = 15 * time.Second
		call := h.T.Context()
		if h.gateway {
			call = lease.WithCall(h.T.Context(), &lease.Call{Received: right.Add(-10 * time.Second)})
		}
		l, err := h.Acquire(call, q)
		if err != nil {
			t.Fatal(err)
		}
		if trusted := l.Remaining; right.Add(trusted).After(l.ExpiresAt.Add(2 * time.Second)) {
			t.Errorf("told %v left, and it expires in %v: others get it %v before", trusted, l.ExpiresAt.Sub(right), right.Add(trusted).Sub(l.ExpiresAt)-time.Second)
		}
	})
}

// The clock was ahead when the call was opened, and is set right before the attempt
// that is applied: the lease that it takes over still lives.
func TestAGrantByAClockThatIsSetBackIsTakenBack(t *testing.T) {
	eachHost(t, func(h host) {
		d := &dropping{HTTPClient: h.liar.HTTPClient}
		h.liar.HTTPClient = d
		h.granted("b")
		q := clocked
		q.TTL, q.Holder = 5*time.Second, "A"
		a, err := h.other().Acquire(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		right := h.now
		call := h.T.Context()
		if h.gateway {
			call = lease.WithCall(h.T.Context(), &lease.Call{Received: right})
		}
		h.now = right.Add(10 * time.Second)
		d.next = func() { h.now = right }
		l, err := h.Acquire(call, clocked)
		if err == nil {
			t.Errorf("token %d granted while %d has %v left", l.Token, a.Token, a.ExpiresAt.Sub(right))
		}
	})
}

func TestAGrantByAClockThatIsSetBetweenTwoAttemptsIsTakenBack(t *testing.T) {
	eachHost(t, func(h host) {
		q := clocked
		q.TTL, q.Holder = 5*time.Second, "A"
		h.granted("b")
		must[lease.Lease](t)(h.other().Acquire(t.Context(), q))
		right := h.now
		call := h.T.Context()
		if h.gateway {
			call = lease.WithCall(h.T.Context(), &lease.Call{Received: right})
		}
		h.now = right.Add(10 * time.Second) // wrong since the last answer
		start := h.requests
		h.answered = func(request int, a *http.Response) error {
			if request == start+1 {
				h.now = right // set right
				return errors.New("lost")
			}
			return nil
		}
		got, err := h.Acquire(call, clocked)
		if err == nil {
			t.Errorf("granted (remaining %v) while A has 5 s left on every right clock", got.Remaining)
		} else {
		}
	})
}

func TestARenewalIsCountedByTheClockAfterItWasSet(t *testing.T) {
	eachHost(t, func(h host) {
		d := &dropping{HTTPClient: h.liar.HTTPClient}
		h.liar.HTTPClient = d
		l := h.held()
		right := h.now
		h.now = right.Add(-10 * time.Second)
		d.next = func() { h.now = right }
		call := h.T.Context()
		if h.gateway {
			call = lease.WithCall(h.T.Context(), &lease.Call{Received: h.now})
		}
		r, err := h.Renew(call, renewalOf(l, 2*time.Minute))
		if err == nil && right.Add(r.Remaining).After(r.ExpiresAt.Add(2*time.Second)) {
			t.Errorf("told %v left, and it expires in %v", r.Remaining, r.ExpiresAt.Sub(right))
		}
	})
}
