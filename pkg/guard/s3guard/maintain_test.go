package s3guard_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

func TestBytesThatSomebodyHasReplacedAreNotRead(t *testing.T) {
	g, _ := newGuard(t)
	write(t, g, "film.mp4", 5, "a film")
	info, err := g.Stat(t.Context(), "film.mp4")
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, g, info.DataKey, "somebody else's")
	if _, err := g.Get(t.Context(), "film.mp4"); !errors.Is(err, s3guard.ErrReplaced) {
		t.Errorf("got error %v, want ErrReplaced", err)
	}
}

func TestAListHasWhatIsThereAndNothingElse(t *testing.T) {
	g, n := newGuard(t)
	for _, key := range []string{"a/1", "a/2", "a/3", "b/1"} {
		write(t, g, key, 5, key)
	}
	if err := g.Delete(t.Context(), holding(5), "a/2"); err != nil {
		t.Fatal(err)
	}
	if err := g.Claim(t.Context(), holding(5), "a/claimed"); err != nil {
		t.Fatal(err)
	}
	putRaw(t, g, "a/foreign", "a file of somebody else's")
	list := func(prefix string, most int) (keys []string) {
		t.Helper()
		if err := g.List(t.Context(), prefix, func(key string, info s3guard.Info) bool {
			if info.Size != 3 {
				t.Errorf("%s has %d bytes", key, info.Size)
			}
			keys = append(keys, key)
			return len(keys) < most
		}); err != nil {
			t.Error(err)
		}
		return keys
	}
	for prefix, want := range map[string][]string{"": {"a/1", "a/3", "b/1"}, "a/": {"a/1", "a/3"}, "c": nil} {
		if got := list(prefix, 10); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", prefix, got, want)
		}
	}
	if got := list("", 1); len(got) != 1 {
		t.Errorf("got %q after the first", got)
	}
	n.Next("GET bucket", say(403, "AccessDenied"))
	if err := g.List(t.Context(), "", nil); err == nil {
		t.Error("a list that failed is complete")
	}
}

func TestPruneForgetsWhatHasBeenGoneForLong(t *testing.T) {
	g, n := newGuard(t)
	for _, key := range []string{"kept", "deleted", "again"} {
		write(t, g, key, 5, key)
	}
	for _, key := range []string{"deleted", "again"} {
		if err := g.Delete(t.Context(), holding(6), key); err != nil {
			t.Fatal(err)
		}
	}
	putRaw(t, g, "foreign", "a file of somebody else's")
	if pruned, err := g.Prune(t.Context(), "", time.Now().Add(-time.Hour)); pruned != 0 || err != nil {
		t.Errorf("pruned %d, error %v, want that all is too young", pruned, err)
	}
	there := overHere(t, g)
	n.Next("DELETE pointer", first(func() { write(t, there, "again", 6, "written meanwhile") }, pass))
	if pruned, err := g.Prune(t.Context(), "again", all()); pruned != 0 || err != nil {
		t.Errorf("pruned %d, error %v, want that it was written meanwhile", pruned, err)
	}
	if pruned, err := g.Prune(t.Context(), "", all()); pruned != 1 || err != nil {
		t.Errorf("pruned %d, error %v, want 1", pruned, err)
	}
	holds(t, g, "again", "written meanwhile")
	holds(t, g, "kept", "kept")
	getRaw(t, g, "foreign")
	if seen, err := g.Seen(t.Context(), "deleted"); err != nil || len(seen) != 0 {
		t.Errorf("it has seen %v, error %v, want nothing", seen, err)
	}
	write(t, g, "deleted", 1, "from the start")
	n.Next("DELETE pointer", say(403, "AccessDenied"))
	if err := g.Delete(t.Context(), holding(1), "deleted"); err != nil {
		t.Fatal(err)
	}
	if pruned, err := g.Prune(t.Context(), "deleted", all()); pruned != 0 || err == nil {
		t.Errorf("pruned %d, error %v, want that access was denied", pruned, err)
	}
}

func TestAResetThatIsOvertakenIsNotApplied(t *testing.T) {
	g, n := newGuard(t)
	write(t, g, "film.mp4", 9, "nine")
	there := overHere(t, g)
	n.Next("PUT pointer", first(func() { write(t, there, "film.mp4", 9, "again") }, pass))
	if err := g.Reset(t.Context(), holding(5), "film.mp4"); !errors.Is(err, fence.ErrNotApplied) {
		t.Errorf("got error %v, want that it was not applied", err)
	}
	if seen, err := g.Seen(t.Context(), "film.mp4"); err != nil || seen[lock] != 9 {
		t.Errorf("it has seen %v, error %v, want 9", seen, err)
	}
	for _, key := range []string{"", ".pawl/x"} {
		if err := g.Reset(t.Context(), holding(5), key); !errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("%q: got error %v", key, err)
		}
		if _, err := g.Seen(t.Context(), key); err == nil {
			t.Errorf("%q: has been seen", key)
		}
	}
}
