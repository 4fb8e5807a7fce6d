package s3guard_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

func TestSweepRemovesWhatNoPointerLeadsTo(t *testing.T) {
	g, n := newGuard(t)
	ctx := t.Context()
	write(t, g, "replaced", 5, "old")
	write(t, g, "replaced", 5, "new")
	write(t, g, "replica", 5, "a replica")
	write(t, g, "deleted", 5, "old")
	if err := g.Object(holding(5), "deleted").Delete(ctx); err != nil {
		t.Fatal(err)
	}
	n.Every("PUT pointer", say(403, "AccessDenied"))
	for _, key := range []string{"replaced", "failed"} {
		if err := g.Object(holding(6), key).Write(ctx, strings.NewReader("vain"), s3guard.About{}); !errors.Is(err, fence.ErrNotApplied) {
			t.Fatal(err)
		}
	}
	n.Every("PUT pointer", pass)
	others := []string{".pawl/replaced/not-ours", ".pawl/replaced/ABCDEFGHIJKLMNOPQRSTUVWXYZ", ".pawl/ABCDEFGHIJKLMNOPQRSTUVWXYZ", "elsewhere/ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
	for _, key := range others {
		putRaw(t, g, key, "not ours")
	}

	if n, err := g.Sweep(ctx, "", time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("swept %d, error %v, want that all is too young", n, err)
	}
	if n, err := g.Sweep(ctx, "rep", all()); n != 2 || err != nil {
		t.Errorf("swept %d of those that begin with rep, error %v, want 2", n, err)
	}
	if n, err := g.Sweep(ctx, "", all()); n != 2 || err != nil {
		t.Errorf("swept %d, error %v, want the other 2", n, err)
	}
	if n, err := g.Sweep(ctx, "", all()); n != 0 || err != nil {
		t.Errorf("swept %d, error %v, want nothing left", n, err)
	}
	holds(t, g, "replaced", "new")
	holds(t, g, "replica", "a replica")
	for _, key := range others {
		getRaw(t, g, key)
	}
	if got := keys(t, g, ".pawl/"); len(got) != 5 {
		t.Errorf("left %q, want 2 with data and 3 that are not the guard's", got)
	}
	wantStale(t, g.Object(holding(4), "deleted").Claim(ctx), 4, 5)
}

func TestSweepReadsEveryPage(t *testing.T) {
	g, _ := newGuard(t)
	const ours = ".pawl/film.mp4/ABCDEFGHIJKLMNOPQRSTUV%04d.0c5f9fd4"
	var all1001 sync.WaitGroup
	next := make(chan int)
	for range 8 {
		all1001.Go(func() {
			for i := range next {
				putRaw(t, g, fmt.Sprintf(ours, i), "")
			}
		})
	}
	for i := range 1001 {
		next <- i
	}
	close(next)
	all1001.Wait()
	if n, err := g.Sweep(t.Context(), "", all()); n != 1001 || err != nil {
		t.Errorf("swept %d, error %v, want 1001", n, err)
	}
}

func TestSweepSaysWhatItCouldNotDelete(t *testing.T) {
	g, n := newGuard(t)
	for range 3 {
		write(t, g, "film.mp4", 5, "a film")
	}
	n.Next("POST bucket", answer(200, http.Header{}, `<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code></Error></DeleteResult>`))
	if n, err := g.Sweep(t.Context(), "", all()); n != 1 || err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("swept %d, error %v, want 1 and that access was denied", n, err)
	}
	for _, kind := range []string{"GET bucket", "GET pointer", "POST bucket"} {
		n.Next(kind, say(403, "AccessDenied"))
		if n, err := g.Sweep(t.Context(), "", all()); n != 0 || err == nil {
			t.Errorf("%s fails: swept %d, error %v, want an error", kind, n, err)
		}
	}
}

// One file of somebody else's, in the place of a pointer, must not be the end of
// all sweeping.
func TestSweepGoesOnPastWhatItCannotRead(t *testing.T) {
	g, _ := newGuard(t)
	for i := range 14 {
		for _, key := range []string{fmt.Sprintf("a%02d", i), fmt.Sprintf("b%02d", i)} {
			write(t, g, key, 5, "old")
			write(t, g, key, 5, "new")
		}
		putRaw(t, g, fmt.Sprintf("a%02d", i), "a file of somebody else's")
	}
	swept, err := g.Sweep(t.Context(), "", all())
	if swept != 14 || err == nil || strings.Count(err.Error(), "not a pointer") != 10 || !strings.Contains(err.Error(), "and 4 more") {
		t.Errorf("swept %d, error %v, want 14 and 10 of the 14 that are no pointers", swept, err)
	}
	if got := keys(t, g, ".pawl/a"); len(got) != 28 {
		t.Errorf("%d data objects of those are left, want all 28", len(got))
	}
	holds(t, g, "b03", "new")
}

// However prefixes nest, the data of another guard is foreign by name.
func TestSweepNeverTakesTheDataOfAnotherGuard(t *testing.T) {
	outer, _ := newGuard(t)
	inner := overHere(t, outer)
	inner.DataPrefix = ".pawl/b/"
	write(t, inner, "film.mp4", 5, "inner")
	write(t, outer, "b/c.mp4", 5, "outer")
	for _, g := range []*s3guard.Guard{outer, inner} {
		if n, err := g.Sweep(t.Context(), "", all()); n != 0 || err != nil {
			t.Errorf("swept %d, error %v, want nothing", n, err)
		}
	}
	holds(t, inner, "film.mp4", "inner")
	holds(t, outer, "b/c.mp4", "outer")
}

// Writers and a sweeper that keeps its one condition: it leaves alone what was
// uploaded since the oldest write under way began.
func TestSweepRemovesNothingThatWritersNeed(t *testing.T) {
	g, n := newGuard(t)
	const objects, writers = 3, 6
	var mu sync.Mutex
	begun := make(map[int]time.Time)
	oldest := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		t := time.Now()
		for _, b := range begun {
			if b.Before(t) {
				t = b
			}
		}
		return t
	}
	swept := 0
	until := time.Now().Add(3 * time.Second) // S3 counts in seconds: the first is never swept
	var all sync.WaitGroup
	for w := range writers {
		here := overHere(t, g)
		all.Go(func() {
			for i := 0; time.Now().Before(until); i++ {
				mu.Lock()
				begun[w] = time.Now()
				mu.Unlock()
				key, text := fmt.Sprintf("film/%d", (w+i)%objects), fmt.Sprintf("%d of %d", i, w)
				err := here.Object(holding(fence.Token(1+i)), key).Write(t.Context(), strings.NewReader(text), s3guard.About{})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
				mu.Lock()
				delete(begun, w)
				mu.Unlock()
				if _, err := get(t.Context(), here, key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for time.Now().Before(until) {
		n, err := g.Sweep(t.Context(), "", oldest())
		if err != nil {
			t.Fatal(err)
		}
		swept += n
	}
	all.Wait()
	if swept == 0 {
		t.Error("swept nothing beside the writers")
	}
	t.Logf("swept %d beside the writers", swept)
	n.Sent()
	if _, err := g.Sweep(t.Context(), "", time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if got := keys(t, g, ".pawl/"); len(got) != objects {
		t.Errorf("%d data objects are left of %d objects: %q", len(got), objects, got)
	}
	for i := range objects {
		if _, err := get(t.Context(), g, fmt.Sprintf("film/%d", i)); err != nil {
			t.Error(err)
		}
	}
}
