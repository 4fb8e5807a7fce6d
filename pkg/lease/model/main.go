// Command model searches every state of the models of the lease protocol, within
// their bounds, and prints a table of what it found: the invariants that hold,
// and the planted bugs that break them. It exits with status 1 if an invariant
// does not hold, or if a planted bug is not found.
//
//	go run ./pkg/lease/model [-long] [-only name] [-limit states] [-trace]
//
// It can say nothing of what is beyond the bounds, and of a case that came to the
// limit only how far it holds. The output is the same each time.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pawl-lock/pawl/pkg/lease/model/explore"
	"github.com/pawl-lock/pawl/pkg/lease/model/grants"
	"github.com/pawl-lock/pawl/pkg/lease/model/guards"
	"github.com/pawl-lock/pawl/pkg/lease/model/waiting"
)

// models are searched in this order.
var models = []struct {
	name    string
	cases   []explore.Case
	planted []explore.Case
}{
	{"grants", grants.Cases(), grants.PlantedBugs()},
	{"waiting", waiting.Cases(), waiting.PlantedBugs()},
	{"guards", guards.Cases(), guards.PlantedBugs()},
}

// options say which cases are searched, and how far.
type options struct {
	long, trace bool
	only        string
	limit       int
}

func main() {
	var o options
	flag.BoolVar(&o.long, "long", false, "search the cases that take minutes too")
	flag.BoolVar(&o.trace, "trace", false, "print the steps that lead to each planted bug")
	flag.StringVar(&o.only, "only", "", "search only the cases whose name, as \"model: case\", contains this")
	flag.IntVar(&o.limit, "limit", 30_000_000, "the most states of a case")
	flag.Parse()
	failed := 0
	fmt.Println("# What the models found\n\nWritten by `make model`; see [PROTOCOL.md](../PROTOCOL.md).")
	for _, m := range models {
		failed += o.table(os.Stdout, m.name, "must hold", m.cases)
		failed += o.table(os.Stdout, m.name, "planted bugs", m.planted)
	}
	if failed > 0 {
		fmt.Fprintf(os.Stderr, "%d cases are not as expected\n", failed)
		os.Exit(1)
	}
}

// table searches the cases that are selected, and prints a line for each. It
// returns how many are not as expected.
func (o options) table(w io.Writer, model, kind string, cases []explore.Case) (failed int) {
	cases = slices.DeleteFunc(cases, func(c explore.Case) bool {
		return !strings.Contains(model+": "+c.Name, o.only)
	})
	if len(cases) == 0 {
		return 0
	}
	fmt.Fprintf(w, "\n## %s: %s\n\n| case | states | steps | found |\n|---|---:|---:|---|\n", model, kind)
	states, searched := 0, 0
	for _, c := range cases {
		if c.Long && !o.long {
			fmt.Fprintf(w, "| %s | | | not searched without -long |\n", c.Name)
			continue
		}
		r := c.Run(o.limit)
		fmt.Fprintf(w, "| %s | %d | %d | %s |\n", c.Name, r.States, r.Depth, r.Verdict())
		if err := c.Check(r); err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
		} else if o.trace && r.Broken != "" {
			fmt.Fprint(os.Stderr, c.Name, "\n", r.Steps())
		}
		states += r.States
		searched++
	}
	fmt.Fprintf(w, "| **%d of %d as expected** | **%d** | | |\n", searched-failed, len(cases), states)
	return failed
}
