package explore_test

import (
	"slices"
	"testing"

	"github.com/pawl-lock/pawl/pkg/lease/model/explore"
)

// A counter goes up by one or two until it has come to its last number.
type counter struct{ last, bad int }

func (counter) Initial() int { return 0 }

func (c counter) Next(n int, step explore.Step[int]) {
	for by := 1; by <= 2 && n+by <= c.last; by++ {
		broken := ""
		if n+by == c.bad {
			broken = "BAD: came to a bad number"
		}
		step(n+by, broken, "add %d", by)
	}
}

func TestASearchVisitsEveryStateOnce(t *testing.T) {
	r := explore.Run(counter{last: 10}, 100)
	if !r.Exhausted || r.Broken != "" || r.States != 11 || r.Transitions != 19 {
		t.Errorf("got %+v, want 11 states, 19 transitions, exhausted", r)
	}
}

func TestTheTraceOfABrokenInvariantIsAShortestOne(t *testing.T) {
	r := explore.Run(counter{last: 10, bad: 5}, 100)
	if want := []string{"add 1", "add 2", "add 2"}; r.Exhausted || !slices.Equal(r.Trace, want) {
		t.Errorf("got %v (exhausted: %v), want %v", r.Trace, r.Exhausted, want)
	}
	if err := (explore.Case{Breaks: "BAD"}).Check(r); err != nil {
		t.Errorf("a planted bug was found: got %v, want no error", err)
	}
	if (explore.Case{}).Check(r) == nil || (explore.Case{Breaks: "WORSE"}).Check(r) == nil {
		t.Error("another invariant than expected is broken: got no error")
	}
}

func TestASearchThatComesToItsLimitIsNotExhausted(t *testing.T) {
	r := explore.Run(counter{last: 10}, 5)
	if r.Exhausted || r.States > 7 {
		t.Errorf("got %+v, want a search that stopped after 5 states", r)
	}
	if (explore.Case{Breaks: "BAD"}).Check(r) == nil {
		t.Error("a planted bug was not found: got no error")
	}
}
