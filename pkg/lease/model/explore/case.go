package explore

import (
	"fmt"
	"strings"
)

// A Case is a model within certain bounds, and what a search of it must find.
type Case struct {
	Name string

	// Breaks is the name of the invariant that the search must find broken: the
	// model has a planted bug. Empty means that every invariant must hold.
	Breaks string

	// Long says that the search takes long: tests leave it to make model, unless
	// ROUNDS is set.
	Long bool

	Run func(limit int) Result
}

// Verdict says in one line what r found.
func (r Result) Verdict() string {
	switch {
	case r.Broken != "":
		return "breaks " + r.Broken
	case r.Exhausted:
		return "holds"
	}
	return "holds as far as searched"
}

// Check returns an error, with the trace if there is one, unless r is what c
// expects. A search that came to its limit shows no planted bug, and is no
// error otherwise.
func (c Case) Check(r Result) error {
	name, _, _ := strings.Cut(r.Broken, ":")
	if name == c.Breaks {
		return nil
	}
	return fmt.Errorf("%s: %s after %d states, want it to break %q\n%s",
		c.Name, r.Verdict(), r.States, c.Breaks, r.Steps())
}

// Steps returns the trace, one numbered line each.
func (r Result) Steps() string {
	var b strings.Builder
	for i, s := range r.Trace {
		fmt.Fprintf(&b, "%4d. %s\n", i+1, s)
	}
	return b.String()
}
