package httplease_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// agreeing is a service that says yes to whatever is valid, so that every
// member of every request gets past the handler.
type agreeing struct{}

func (agreeing) Acquire(_ context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	return lease.Lease{Name: q.Name, Token: 7, ID: some.ID, Holder: q.Holder, TTL: q.TTL}, q.Validate(lease.MaxTTL, lease.MaxLockDelay)
}
func (agreeing) Renew(_ context.Context, q lease.RenewRequest) (lease.Lease, error) {
	return lease.Lease{Name: q.Name, Token: q.Token, ID: q.LeaseID, TTL: q.TTL}, q.Validate()
}
func (agreeing) Release(_ context.Context, q lease.ReleaseRequest) (lease.State, error) {
	return lease.State{Name: q.Name, Token: q.Token}, q.Validate()
}
func (agreeing) Break(_ context.Context, q lease.BreakRequest) (lease.Broken, error) {
	return lease.Broken{State: lease.State{Name: q.Name, Token: q.Token}}, q.Validate()
}
func (agreeing) Get(_ context.Context, n lease.Name) (lease.State, error) {
	return lease.State{Name: n}, n.Validate()
}

// FuzzRequest sends any bytes as the body of every call. Nothing fails, every refusal is a problem that can be read, and what is
// accepted says the same to the most usual JSON decoder: two readers of one
// request never see two locks.
func FuzzRequest(f *testing.F) {
	for _, q := range requests(some) {
		f.Add([]byte(q.body("", "")))
		for _, m := range q.members {
			for _, v := range append(m.good, m.bad...) {
				f.Add([]byte(q.body(m.name, v)))
			}
		}
	}
	h := &httplease.Handler{Service: agreeing{}, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, q := range requests(some) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("POST", q.path(), bytes.NewReader(data)))
			lock, accepted := read(t, w)
			if !accepted {
				continue
			}
			// As maps: the member names of encoding/json match in any case.
			var in, again map[string]any
			if err := json.Unmarshal(data, &in); err != nil {
				t.Fatalf("%s accepted what is not JSON: %v", q.action, err)
			}
			text, _ := json.Marshal(in)
			if err := json.Unmarshal(text, &again); err != nil || in["lock"] != lock || again["lock"] != lock {
				t.Errorf("%s %q: got the lock %q, encoding/json reads %q and then %q", q.action, data, lock, in["lock"], again["lock"])
			}
			// Only numbers below 2^53 are accepted, so that a float64 has them exactly.
			var out map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
				t.Fatal(err)
			}
			for _, number := range []string{"token", "ttl_ms"} {
				if sent, ok := in[number]; ok && out[number] != sent {
					t.Errorf("%s %q: got %s %v, encoding/json reads %v", q.action, data, number, out[number], sent)
				}
			}
		}
	})
}

// read checks that an answer is one of ours and returns the lock of a success.
func read(t *testing.T, w *httptest.ResponseRecorder) (lock string, accepted bool) {
	t.Helper()
	var a struct {
		Status               int
		Lock, Code, Type     string
		Title, Detail, Field string
	}
	media := w.Header().Get("Content-Type")
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || !utf8.Valid(w.Body.Bytes()) {
		t.Fatalf("%d %q: %v", w.Code, w.Body, err)
	}
	switch w.Code {
	case http.StatusOK, http.StatusCreated:
		if media != "application/json" || (lease.Name{Namespace: "payments", Lock: a.Lock}).Validate() != nil {
			t.Errorf("%d %s %q", w.Code, media, w.Body)
		}
		return a.Lock, true
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		if media != "application/problem+json" || a.Status != w.Code || a.Code == "" || a.Title == "" || a.Detail == "" || !strings.HasSuffix(a.Type, a.Code) {
			t.Errorf("%d %s %q", w.Code, media, w.Body)
		}
	default:
		t.Errorf("got %d %q", w.Code, w.Body)
	}
	return "", false
}
