package fence_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// When a kept connection ends without an answer, net/http sends again what an
// Idempotency-Key marks. The first was applied; the second is refused.
func TestARefusalOverHTTPSaysThatAnEarlierAttemptMayHaveBeenApplied(t *testing.T) {
	applied, seen := 0, fence.Token(5)
	server := httptest.NewServer(fence.Handler{Required: true, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := fence.HoldingFrom(r.Context())
		lock, token := h.Lock, h.Token
		switch {
		case r.URL.Path == "/before":
		case seen > token:
			fence.WriteRefusal(w, fence.Settled(&fence.StaleError{Lock: lock, Token: token, Seen: seen, Resource: "row"}))
		default:
			applied++
			seen = 6 // a newer holder comes
			panic(http.ErrAbortHandler)
		}
	})})
	defer server.Close()
	client := &http.Client{Transport: fence.Transport{}}
	post := func(path string) error {
		r, err := http.NewRequestWithContext(fence.NewContext(t.Context(), fence.Holding{Lock: "bank/7", Token: 5}), http.MethodPost, server.URL+path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "1")
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		return fence.ReadRefusal(a)
	}
	if err := post("/before"); err != nil { // from here on the connection is kept
		t.Fatal(err)
	}
	err := post("/pay")
	var stale *fence.StaleError
	if !errors.As(err, &stale) || applied != 1 {
		t.Fatalf("applied %d times, with error %v, want once, and that it is stale", applied, err)
	}
	if stale.NotApplied || !strings.Contains(err.Error(), fence.Maybe) {
		t.Errorf("told that nothing was changed: %v", err)
	}
}

// What an older service says of it is not believed either.
func TestAClaimThatNothingWasChangedIsNotReadFromTheWire(t *testing.T) {
	for _, code := range []string{"stale_token", "other_lock"} {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.WriteString(`{"code": "` + code + `", "token": 5, "seen": 6, "not_applied": true}`)
		err := fence.ReadRefusal(w.Result())
		if !fence.Refused(err) || !strings.Contains(err.Error(), fence.Maybe) {
			t.Errorf("got error %v", err)
		}
	}
}
