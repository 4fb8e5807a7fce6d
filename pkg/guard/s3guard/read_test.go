package s3guard_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	g, _ := newGuard(t)
	ctx := t.Context()
	if err := g.Object(holding(5), "claimed").Claim(ctx); err != nil {
		t.Fatal(err)
	}
	write(t, g, "deleted", 5, "five")
	if err := g.Object(holding(5), "deleted").Delete(ctx); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"never written", "claimed", "deleted"} {
		if _, err := g.Get(ctx, key); !errors.Is(err, s3guard.ErrNotFound) {
			t.Errorf("get what was %s: got error %v, want ErrNotFound", key, err)
		}
		if _, err := g.Stat(ctx, key); !errors.Is(err, s3guard.ErrNotFound) {
			t.Errorf("stat what was %s: got error %v, want ErrNotFound", key, err)
		}
	}
}

func TestNoBucketIsNoAnswer(t *testing.T) {
	g, _ := newGuard(t)
	g.Bucket += "-not"
	if _, err := g.Get(t.Context(), "film.mp4"); err == nil || errors.Is(err, s3guard.ErrNotFound) {
		t.Errorf("get: got error %v, want one that is not ErrNotFound", err)
	}
	if err := g.Object(holding(5), "film.mp4").Claim(t.Context()); !errors.Is(err, fence.ErrNotApplied) {
		t.Errorf("claim: got error %v, want ErrNotApplied", err)
	}
}

// The pointer is read, then a newer version comes and the old one is swept away.
func TestAReaderFollowsThePointerAgainWhenTheDataIsGone(t *testing.T) {
	g, n := newGuard(t)
	there := overHere(t, g)
	write(t, g, "film.mp4", 5, "five")
	replaced := func(token fence.Token, text string) fault {
		return first(func() {
			write(t, there, "film.mp4", token, text)
			if _, err := there.Sweep(t.Context(), "", all()); err != nil {
				t.Error(err)
			}
		}, pass)
	}
	n.Next("GET data", replaced(6, "six"), replaced(6, "six again"), replaced(7, "seven"))
	holds(t, g, "film.mp4", "seven")

	n.Next("GET data", first(func() {
		if err := there.Object(holding(7), "film.mp4").Delete(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := there.Sweep(t.Context(), "", all()); err != nil {
			t.Error(err)
		}
	}, pass))
	if _, err := g.Get(t.Context(), "film.mp4"); !errors.Is(err, s3guard.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
}

func TestDataThatIsLostIsAnError(t *testing.T) {
	g, _ := newGuard(t)
	write(t, g, "film.mp4", 5, "five")
	info, err := g.Stat(t.Context(), "film.mp4")
	if err != nil {
		t.Fatal(err)
	}
	removeRaw(t, g, info.DataKey)
	if _, err := g.Get(t.Context(), "film.mp4"); err == nil || errors.Is(err, s3guard.ErrNotFound) {
		t.Errorf("got error %v, want one that is not ErrNotFound", err)
	}
}

func TestAReaderGetsOneWholeVersionWhateverHappens(t *testing.T) {
	g, _ := newGuard(t)
	version := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), 100_000+i) }
	write(t, g, "film.mp4", 1, version(0))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		here := overHere(t, g)
		readers.Go(func() {
			for last := 0; ; {
				text, err := get(t.Context(), here, "film.mp4")
				if err != nil {
					t.Error(err)
					return
				}
				i := len(text) - 100_000
				if i < last || text != version(i) {
					t.Errorf("read %d bytes that are no version, after version %d", len(text), last)
					return
				}
				last = i
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 100 * rigor.Rounds(t) {
		write(t, g, "film.mp4", fence.Token(1+i/10), version(i+1))
		if _, err := g.Sweep(t.Context(), "", all()); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
}
