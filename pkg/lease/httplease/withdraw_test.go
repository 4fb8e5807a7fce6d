package httplease_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

func TestAReleaseNamesALeaseOrARequestAndNotBoth(t *testing.T) {
	bubble(t, func(w wire, l lease.Lease) {
		id, token, request := fmt.Sprintf(`"lease_id":%q`, l.ID), fmt.Sprintf(`"token":%d`, l.Token), `"request_id":`+many("r", 22)
		for _, c := range []struct {
			field   string
			members []string
		}{
			{"lease_id", nil},
			{"lease_id", []string{token}},
			{"lease_id", []string{`"lease_id":""`, token}},
			{"token", []string{id}},
			{"token", []string{id, `"token":0`}},
			{"token", []string{`"token":"1"`, id}},
			{"request_id", []string{request, id, token}},
			{"request_id", []string{request, id}},
			{"request_id", []string{request, token}},
			{"request_id", []string{request, `"lease_id":""`}}, // empty is not left out
			{"request_id", []string{request, `"token":0`}},
			{"request_id", []string{`"request_id":""`}},
			{"request_id", []string{`"request_id":""`, id, token}},
			{"request_id", []string{`"request_id":null`}},
			{"request_id", []string{`"request_id":` + many("r", 21)}},
			{"request_id", []string{`"request_id":` + many("r", 65)}},
			{"request_id", []string{`"request_id":` + many("=", 22)}},
			{"request_id", []string{`"request_id":7`}},
			{"lease_id", []string{`"lease_id":null`, request}},
			{"token", []string{`"token":null`, request}},
		} {
			body := "{" + strings.Join(append([]string{`"lock":"orders/42"`}, c.members...), ",") + "}"
			w.refused("POST", "/v1/payments/release", body, http.StatusBadRequest, "invalid", c.field)
			w.unchanged(l, body)
		}
		w.refused("POST", "/v1/payments/release", "{"+request+"}", http.StatusBadRequest, "invalid", "lock")
	})
}

// What is answered to a caller is the state of the lock, without the other holder.
func TestAReleaseByRequestIDTellsOfNoOtherHolder(t *testing.T) {
	bubble(t, func(w wire, l lease.Lease) {
		a := w.send("POST", "/v1/payments/release", `{"lock":"orders/42","request_id":`+many("r", 64)+`}`)
		var s struct {
			State, Holder string
			Token         int64
		}
		if err := json.Unmarshal([]byte(a.body), &s); err != nil || a.status != 200 || s.State != "held" || s.Holder != "" || s.Token != int64(l.Token) || strings.Contains(a.body, l.ID) {
			t.Errorf("got %d %s, %v", a.status, a.body, err)
		}
		w.unchanged(l, "a release by request id")
	})
}

// The principal is what the gateway says, and not what the caller does.
func TestOnlyThePrincipalOfARequestReleasesItByItsID(t *testing.T) {
	m := new(memlease.Store)
	as := func(principal string) lease.Service {
		h := &httplease.Handler{Service: m, Log: slog.New(slog.DiscardHandler), Caller: func(r *http.Request) httplease.Caller {
			c := httplease.Anyone(r)
			c.Principal = principal
			return c
		}}
		return &httplease.Client{URL: "http://pawl.test", HTTP: &http.Client{Transport: contract{t, h}}}
	}
	q := lease.AcquireRequest{Name: orders, TTL: time.Minute, Holder: "worker-1", RequestID: lease.NewID()}
	l, err := as("alice").Acquire(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	give := lease.ReleaseRequest{Name: orders, RequestID: q.RequestID}
	if _, err := as("bob").Release(t.Context(), give); !errors.Is(err, lease.ErrRequestConflict) {
		t.Errorf("by another principal: got error %v", err)
	}
	if s, err := as("bob").Get(t.Context(), orders); err != nil || !s.Held || s.Token != l.Token {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err := as("alice").Release(t.Context(), give); err != nil || s.Held {
		t.Errorf("by its own: got %+v, %v", s, err)
	}
	if _, err := as("alice").Acquire(t.Context(), q); !errors.Is(err, lease.ErrRequestSpent) {
		t.Errorf("acquire: got error %v", err)
	}
}

// A store that has no room says for how long; so does the wire.
func TestAReleaseByRequestIDWithoutRoomSaysWhenThereIsSome(t *testing.T) {
	w := serving(t, failing{&lease.RetryError{Err: lease.ErrOutcomeUnknown, After: 1234 * time.Millisecond}})
	_, err := w.c.Release(t.Context(), lease.ReleaseRequest{Name: orders, RequestID: lease.NewID()})
	var retry *lease.RetryError
	if !errors.Is(err, lease.ErrOutcomeUnknown) || !errors.As(err, &retry) || retry.After != 1234*time.Millisecond {
		t.Errorf("got %v", err)
	}
}
