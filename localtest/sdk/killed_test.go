package sdk

import (
	"testing"
	"time"
)

func TestTheLockOfAKilledProcessIsTakenOverInTime(t *testing.T) {
	rounds(t, func(t *testing.T) {
		w := newWorld(t)
		p := start(t, w.url, "killed")
		p.tell(t, "acquire")
		p.hear(t, "granted")
		p.hear(t, "renewed")
		p.Kill()
		p.all(t)
		h, granted := w.takeOver(t)
		bound(t, granted.Sub(w.lastRenewal()), ttl+skew+poll)
		if a := h.Abandoned(); a == nil || a.Holder != "killed" {
			t.Errorf("got %v, want to be told whose lock it was", a)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAProcessThatIsKilledWhileItWaitsIsGrantedTheLockOnceAtMost(t *testing.T) {
	rounds(t, func(t *testing.T) {
		w := newWorld(t)
		first, err := w.client("first").Acquire(t.Context(), name.String())
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, w.url, "killed")
		p.tell(t, "acquire")
		for <-w.waits != "killed" {
		}
		p.Kill()
		p.all(t)
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		released := time.Now()
		for <-w.granted != "killed" { // its request goes on at the service
		}

		h, granted := w.takeOver(t)
		w.mu.Lock()
		grants, dead := w.count["killed"], w.grants["killed"]
		w.mu.Unlock()
		took := granted.Sub(dead)
		t.Logf("granted to the dead %v after the release, free again after %v", dead.Sub(released).Round(time.Millisecond), took.Round(time.Millisecond))
		if grants != 1 || took < ttl || took > ttl+skew+poll+slack {
			t.Errorf("granted %d times to the dead, free again after %v, want once, and %v", grants, took, ttl+skew+poll)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
