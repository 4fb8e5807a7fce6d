package sdk

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAProcessThatWasPausedForThreeTTLsDoesNothingUnderItsOldToken(t *testing.T) {
	rounds(t, func(t *testing.T) {
		w := newWorld(t)
		p := start(t, w.url, "paused")
		p.tell(t, "acquire")
		p.hear(t, "granted")
		p.tell(t, "work")
		if got := p.hear(t, "worked"); got != "200" {
			t.Fatalf("the ledger said %s", got)
		}
		p.tell(t, "pause")
		p.hear(t, "pausing")
		over := time.After(3 * ttl)
		last := w.lastRenewal()

		h, granted := w.takeOver(t)
		bound(t, granted.Sub(last), ttl+skew+poll)
		for range 3 {
			p.tell(t, "work") // the first that it will see
		}
		<-over
		if err := p.Resume(); err != nil {
			t.Fatal(err)
		}
		p.tell(t, "release")
		said := p.all(t)
		count := func(what string) int {
			return len(slices.DeleteFunc(slices.Clone(said), func(line string) bool { return !strings.HasPrefix(line, what) }))
		}
		if count("lost lost") != 1 || count("lost") != 1 {
			t.Errorf("it said %q, want ErrLost once", said)
		}
		if count("stopped lost") != 3 || count("worked") != 0 || count("renewed") != 0 {
			t.Errorf("it said %q, want that it did no work", said)
		}
		if count("released lost") != 1 {
			t.Errorf("it said %q, want ErrLost from Release", said)
		}
		w.undisturbed(t, h)
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.written) != 1 || w.refused != 0 {
			t.Errorf("%d writes, %d refused, want one from before the pause", len(w.written), w.refused)
		}
	})
}

// bound tells how long a takeover took, from the last sign of life on, and fails
// when it took longer than most.
func bound(t *testing.T, took, most time.Duration) {
	t.Helper()
	t.Logf("taken over %v after the last sign of life, promised within %v", took.Round(time.Millisecond), most)
	if took < ttl || took > most+slack {
		t.Errorf("taken over after %v, want %v to %v", took, ttl, most)
	}
}
