package httplease_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

// as makes the calls of w those of a caller.
func (w wire) as(c httplease.Caller) {
	w.c.HTTP.Transport = contract{w.T, &httplease.Handler{
		Service: w.s, Log: slog.New(slog.DiscardHandler), Caller: func(*http.Request) httplease.Caller { return c },
	}}
}

func TestAScopedCallerMayDoWhatItsScopesNameAndNothingElse(t *testing.T) {
	actions := []string{"acquire", "renew", "release", "break", "read"}
	for _, c := range []struct {
		name   string
		scopes []string
		may    string
	}{
		{"none", nil, ""},
		{"acquire", []string{"payments/acquire"}, "acquire"},
		{"renew", []string{"payments/renew"}, "renew"},
		{"release", []string{"payments/release"}, "release"},
		{"break", []string{"payments/break"}, "break"},
		{"read", []string{"payments/read"}, "read"},
		{"several", []string{"openid", "payments/renew", "payments/release"}, "renew release"},
		{"all", []string{"payments/read", "payments/acquire", "payments/break", "payments/renew", "payments/release"}, strings.Join(actions, " ")},
		{"another namespace", []string{"refunds/acquire", "payment/renew", "paymentss/release", "/break", "read"}, ""},
		{"almost", []string{
			"payments", "payments/", "payments/*", "*", "*/acquire", "Payments/acquire", "payments/ACQUIRE", " payments/acquire", "payments/acquire ",
			"payments/acquires", "payments/acquir", "payments:acquire", "payments/acquire,payments/renew", "payments/acquire payments/renew", "/v1/payments/acquire",
			"payments%2Facquire", "payments/lock", "payments//acquire", "",
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, action := range actions {
				bubble(t, func(w wire, l lease.Lease) {
					q, status := requestOf(l, action), http.StatusOK
					path, body := q.path(), q.body("", "")
					if action == "acquire" {
						status = http.StatusCreated
					}
					w.as(httplease.Caller{Principal: "bob", Scopes: c.scopes})
					if strings.Contains(" "+c.may+" ", " "+action+" ") {
						if a := w.send("POST", path, body); a.status != status {
							w.Errorf("%s: got %d %s", action, a.status, a.body)
						}
						return
					}
					w.refused("POST", path, body, http.StatusForbidden, "forbidden", "")
					// Nothing is learnt of a request that may not be made.
					w.refused("POST", path, "{", http.StatusForbidden, "forbidden", "")
					w.unchanged(l, action)
					w.as(httplease.Caller{Scopes: c.scopes, Unrestricted: true}) // nobody may do nothing
					w.refused("POST", path, body, http.StatusForbidden, "forbidden", "")
					w.as(httplease.Caller{Principal: "bob", Unrestricted: true, Scopes: c.scopes})
					if a := w.send("POST", path, body); a.status != status {
						w.Errorf("%s, unrestricted: got %d %s", action, a.status, a.body)
					}
				})
			}
		})
	}
}

func TestTheServiceIsDescribedToEveryone(t *testing.T) {
	w := serving(t, new(memlease.Store))
	w.as(httplease.Caller{})
	for _, path := range []string{"/healthz", "/v1/openapi.json"} {
		if a := w.send("GET", path, ""); a.status != http.StatusOK {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
	w.refused("GET", "/v1/payments/nothing", "", http.StatusNotFound, "not_found", "")
	w.refused("GET", "/v1/payments/acquire", "", http.StatusMethodNotAllowed, "method_not_allowed", "")
}

func TestARequestIDIsRepeatedToItsPrincipalOnly(t *testing.T) {
	w := serving(t, new(memlease.Store))
	body := `{"lock":"a","ttl_ms":60000,"request_id":"` + strings.Repeat("r", 22) + `"}`
	for _, c := range []struct {
		principal string
		status    int
	}{{"alice", 201}, {"alice", 200}, {"bob", 409}, {"Alice", 409}, {"alice", 200}} {
		w.as(httplease.Caller{Principal: c.principal, Unrestricted: true})
		if a := w.send("POST", "/v1/payments/acquire", body); a.status != c.status || c.status == 409 && a.Code != "request_conflict" {
			t.Errorf("%q: got %d %s, want %d", c.principal, a.status, a.body, c.status)
		}
	}
}

// A host that was frozen between the gateway and here grants nothing, and still
// lets a holder give up.
func TestACallThatWasReceivedLongAgoOnlyReleases(t *testing.T) {
	for _, age := range []time.Duration{31 * time.Second, time.Hour, -2 * time.Second} {
		bubble(t, func(w wire, l lease.Lease) {
			w.as(httplease.Caller{Principal: "anyone", Unrestricted: true, Received: time.Now().Add(-age)})
			for _, q := range requests(l) {
				if q.action != "release" && q.action != "read" {
					w.refused("POST", q.path(), q.body("", ""), http.StatusServiceUnavailable, "clock_skew", "")
				}
			}
			w.unchanged(l, "the old calls")
			q := requestOf(l, "release")
			if a := w.send("POST", q.path(), q.body("", "")); a.status != http.StatusOK {
				w.Errorf("release: got %d %s", a.status, a.body)
			}
		})
	}
}

// within sends a request that must be answered by its deadline.
func (w wire) within(d time.Duration, path, body string) (a answer, took time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	start := time.Now()
	h := w.c.HTTP.Transport
	w.c.HTTP.Transport = transport(func(r *http.Request) (*http.Response, error) { return h.RoundTrip(r.WithContext(ctx)) })
	defer func() { w.c.HTTP.Transport = h }()
	a = w.send("POST", path, body)
	return a, time.Since(start)
}

func TestAWaitEndsInTimeToAnswer(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		29 * time.Second:       20 * time.Second,
		20 * time.Second:       20*time.Second - 800*time.Millisecond,
		5 * time.Second:        5*time.Second - 800*time.Millisecond,
		900 * time.Millisecond: 100 * time.Millisecond,
		700 * time.Millisecond: 0,
	} {
		bubble(t, func(w wire, l lease.Lease) {
			a, took := w.within(deadline, "/v1/payments/acquire", `{"lock":"orders/42","ttl_ms":1000,"wait_ms":20000}`)
			if a.status != http.StatusConflict || a.Code != "held" || took != want {
				w.Errorf("deadline in %v: got %d %s after %v, want held after %v", deadline, a.status, a.body, took, want)
			}
			if s, err := w.s.Get(w.Context(), l.Name); err != nil || s.Token != l.Token {
				w.Errorf("got %+v, %v", s, err)
			}
		})
	}
}

// hanging is a store that answers nothing.
type hanging struct{ failing }

func (hanging) Renew(ctx context.Context, _ lease.RenewRequest) (lease.Lease, error) {
	<-ctx.Done()
	return lease.Lease{}, context.Cause(ctx)
}

func TestACallThatHangsIsAnsweredBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serving(t, hanging{})
		q := requestOf(some, "renew")
		a, took := w.within(5*time.Second, q.path(), q.body("", ""))
		if a.status != http.StatusServiceUnavailable || a.Code != "outcome_unknown" || took != 4700*time.Millisecond {
			t.Errorf("got %d %s after %v, want outcome_unknown after 4.7s", a.status, a.body, took)
		}
	})
}

func TestALeaseWithoutAHolderHasItsCallersName(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "alice": "alice", " a\u202e": " a\u202e", "a\x00\nb\u0085c\x7f": "abc", "a\xffb": "ab",
		strings.Repeat("x", 300): strings.Repeat("x", 256), "x" + strings.Repeat("é", 200): "x" + strings.Repeat("é", 127),
		strings.Repeat("\n", 300) + "z": "z",
	} {
		w := serving(t, new(memlease.Store))
		w.as(httplease.Caller{Principal: "p", Name: name, Unrestricted: true})
		body := `{"lock":"a","ttl_ms":60000,"request_id":"` + strings.Repeat("r", 22) + `"`
		for _, body := range []string{body + `}`, body + `,"holder":""}`, body + `}`} { // the same, and so repeats
			if a := w.send("POST", "/v1/payments/acquire", body); a.status/100 != 2 || holder(t, a) != want {
				t.Errorf("%q: got %d %s, want the holder %q", name, a.status, a.body, want)
			}
		}
		w.as(httplease.Caller{Principal: "other", Name: "bob", Unrestricted: true})
		if a := w.send("POST", "/v1/payments/acquire", `{"lock":"a","ttl_ms":60000}`); a.Code != "held" || holder(t, a) != want {
			t.Errorf("%q: got %s, want it held by %q", name, a.body, want)
		}
		if a := w.send("POST", "/v1/payments/read", `{"lock":"a"}`); holder(t, a) != want {
			t.Errorf("%q: got %s, want the holder %q", name, a.body, want)
		}
		if a := w.send("POST", "/v1/payments/acquire", `{"lock":"b","ttl_ms":60000,"holder":"me"}`); holder(t, a) != "me" {
			t.Errorf("got %s, want the holder that was asked for", a.body)
		}
	}
}

func holder(t *testing.T, a answer) string {
	var body struct{ Holder string }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Errorf("%s: %v", a.body, err)
	}
	return body.Holder
}

func TestAHandlerWithoutACallerServesNobody(t *testing.T) {
	w := serving(t, new(memlease.Store))
	w.c.HTTP.Transport = contract{t, &httplease.Handler{Service: w.s, Log: slog.New(slog.DiscardHandler)}}
	for _, q := range requests(some) {
		w.refused("POST", q.path(), q.body("", ""), http.StatusForbidden, "forbidden", "")
	}
}
