package stories

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Test plays a story as a test: once without the guard, which must destroy data
// or the test could not fail, and ROUNDS times with it, 10 unless that is set.
func Test(t *testing.T, s *Stage) {
	late, intact, err := s.Play(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if intact || late != nil {
		t.Errorf("without the guard: intact is %v, and worker-1 ended with %v; the story shows nothing", intact, late)
	}
	if text, _, err := s.Outcome(t.Context()); err != nil || !strings.HasPrefix(text, "lost update: ") {
		t.Errorf("the loss is told as %q, error %v", text, err)
	}
	rounds, err := strconv.Atoi(os.Getenv("ROUNDS"))
	if err != nil {
		rounds = 10
	}
	for round := range rounds {
		late, intact, err := s.Play(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if !intact {
			t.Errorf("round %d: with the guard, data was destroyed", round)
		}
		for _, want := range []string{fence.ErrStale.Error(), fence.StaleException} {
			if late == nil || !strings.Contains(late.Error(), want) {
				t.Errorf("round %d: worker-1 ended with %v, want %q in what it says", round, late, want)
			}
		}
	}
}
