package stories

import (
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/fence"
)

// Test plays a story as a test: once without the guard, which must destroy data
// or the test could not fail, and ten times with it, or ROUNDS times as often.
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
	for round := range 10 * rigor.Rounds(t) {
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
