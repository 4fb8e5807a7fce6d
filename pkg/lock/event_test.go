package lock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func TestTheLifeOfALockIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		if _, err := s.Service.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: "b"}, TTL: ttl, Holder: "dead"}); err != nil {
			t.Fatal(err)
		}
		s.renew = inTurn(failing[lease.RenewRequest, lease.Lease](lease.ErrUnavailable), s.Service.Renew)
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		time.Sleep(ttl)
		release(t, h)
		want := []lock.EventKind{lock.Refused, lock.Granted, lock.Abandoned, lock.Unrenewed, lock.Renewed, lock.Released}
		if got := seen.kinds(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for _, e := range seen.all {
			if e.Lock != "a/b" {
				t.Errorf("%s: got lock %q", e.Kind, e.Lock)
			}
			switch e.Kind {
			case lock.Refused:
				if !errors.Is(e.Err, lock.ErrHeld) || e.Token != 0 {
					t.Errorf("got %+v, want ErrHeld and no token", e)
				}
			case lock.Granted:
				if e.Token != h.Token() || e.Took < ttl || e.Err != nil {
					t.Errorf("got %+v, want the token and the wait", e)
				}
			case lock.Abandoned:
				if e.Token != h.Token()-1 || e.Holder != "dead" {
					t.Errorf("got %+v, want the holder before", e)
				}
			case lock.Unrenewed:
				if e.Token != h.Token() || !errors.Is(e.Err, lease.ErrUnavailable) {
					t.Errorf("got %+v, want why", e)
				}
			default:
				if e.Token != h.Token() || e.Err != nil {
					t.Errorf("got %+v, want the token", e)
				}
			}
		}
	})
}

func TestALossIsToldAsErrReturnsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = failing[lease.RenewRequest, lease.Lease](lease.ErrExpired)
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		<-h.Lost()
		synctest.Wait()
		if last := seen.all[len(seen.all)-1]; last.Kind != lock.Lost || last.Err != h.Err() || last.Token != h.Token() {
			t.Errorf("got %+v, want the loss with %v", last, h.Err())
		}
	})
}

func TestEventsAreLoggedAtTheLevelOfTheirNews(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		event lock.Event
		want  map[string]any
	}{
		{lock.Event{Kind: lock.Granted, Lock: "a/b", Token: 7, Took: time.Second},
			map[string]any{"level": "INFO", "msg": "lock", "event": "granted", "lock": "a/b", "token": 7.0, "took": 1e9}},
		{lock.Event{Kind: lock.Refused, Lock: "a/b", Err: lock.ErrHeld},
			map[string]any{"level": "DEBUG", "msg": "lock", "event": "refused", "lock": "a/b", "token": 0.0, "error": "the lock is held"}},
		{lock.Event{Kind: lock.GivenUp, Lock: "a/b"},
			map[string]any{"level": "DEBUG", "msg": "lock", "event": "given up", "lock": "a/b", "token": 0.0}},
		{lock.Event{Kind: lock.Refused, Lock: "a/b", Err: failed},
			map[string]any{"level": "WARN", "msg": "lock", "event": "refused", "lock": "a/b", "token": 0.0, "error": "failed"}},
		{lock.Event{Kind: lock.Renewed, Lock: "a/b", Token: 7},
			map[string]any{"level": "DEBUG", "msg": "lock", "event": "renewed", "lock": "a/b", "token": 7.0}},
		{lock.Event{Kind: lock.Unrenewed, Lock: "a/b", Token: 7, Err: failed},
			map[string]any{"level": "WARN", "msg": "lock", "event": "unrenewed", "lock": "a/b", "token": 7.0, "error": "failed"}},
		{lock.Event{Kind: lock.Lost, Lock: "a/b", Token: 7, Err: failed},
			map[string]any{"level": "WARN", "msg": "lock", "event": "lost", "lock": "a/b", "token": 7.0, "error": "failed"}},
		{lock.Event{Kind: lock.Released, Lock: "a/b", Token: 7},
			map[string]any{"level": "INFO", "msg": "lock", "event": "released", "lock": "a/b", "token": 7.0}},
		{lock.Event{Kind: lock.Released, Lock: "a/b", Token: 7, Err: failed},
			map[string]any{"level": "WARN", "msg": "lock", "event": "released", "lock": "a/b", "token": 7.0, "error": "failed"}},
		{lock.Event{Kind: lock.Abandoned, Lock: "a/b", Token: 6, Holder: "dead"},
			map[string]any{"level": "WARN", "msg": "lock", "event": "abandoned", "lock": "a/b", "token": 6.0, "holder": "dead"}},
	} {
		var out bytes.Buffer
		lock.LogEvents(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))(context.Background(), c.event)
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", &out, err)
		}
		delete(got, "time")
		if len(got) != len(c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
		for k, want := range c.want {
			if got[k] != want {
				t.Errorf("%s: got %s %v, want %v", c.event.Kind, k, got[k], want)
			}
		}
	}
}
