// Package exploretest runs the cases of a model as tests: the first states of
// each short one always, and all states of all when ROUNDS is set. A search that
// stops early says nothing of what lies beyond.
package exploretest

import (
	"os"
	"testing"

	"github.com/pawl-lock/pawl/pkg/lease/model/explore"
)

// Limits on the states of one case. The first two take a few seconds for a whole
// model, with the race detector too.
const (
	fewStates    = 10_000 // of a case that must hold: the first steps of it
	enoughStates = 40_000 // for a planted bug
	allStates    = 30_000_000
)

// Run searches each case up to a limit of states.
func Run(t *testing.T, cases []explore.Case) {
	all := os.Getenv("ROUNDS") != ""
	for _, c := range cases {
		limit := fewStates
		switch {
		case all:
			limit = allStates
		case c.Long:
			continue
		case c.Breaks != "":
			limit = enoughStates
		}
		t.Run(c.Name, func(t *testing.T) {
			r := c.Run(limit)
			if err := c.Check(r); err != nil {
				t.Error(err)
			}
			if all && r.Broken == "" && !r.Exhausted {
				t.Errorf("not exhausted within %d states", limit)
			}
		})
	}
}
