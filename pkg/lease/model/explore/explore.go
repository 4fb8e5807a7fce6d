// Package explore visits every state that a bounded model can reach, and reports
// the shortest way to a state that breaks an invariant.
//
// What it says is true of the bounds that the model has, and of no larger ones.
// Two states count as one where two independent 64-bit hashes of them agree.
package explore

import (
	"fmt"
	"hash/maphash"
)

// A Model is a system in which several things can happen next.
type Model[S comparable] interface {
	Initial() S

	// Next passes on every step that can follow s, each time in the same order.
	Next(s S, step Step[S])
}

// A Step leads to the state next. broken names the invariant that the step
// breaks, and is empty if it breaks none. The rest describes the step, as for
// [fmt.Sprintf].
type Step[S comparable] func(next S, broken, format string, args ...any)

// A Result is what a search has found.
type Result struct {
	States, Transitions, Depth int

	// Exhausted says that there is no other state. It is false when the search
	// came to its limit, or to a broken invariant.
	Exhausted bool

	Broken string   // the invariant, or empty
	Trace  []string // the steps that break it, the fewest possible
}

// An edge says how a state was reached first: by which of the steps that can
// follow another.
type edge struct{ from, choice int32 }

type hash [2]uint64

// A search keeps the hash of every state, the first way to it, and the states
// themselves of two depths only.
type search[S comparable] struct {
	model Model[S]
	seeds [2]maphash.Seed
	seen  map[hash]struct{}
	edges []edge
}

// Run searches m until every state is visited, an invariant is broken, or more
// than limit states are found.
func Run[S comparable](m Model[S], limit int) Result {
	s := search[S]{model: m, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, seen: make(map[hash]struct{})}
	var r Result
	frontier := []S{m.Initial()}
	s.add(frontier[0], edge{from: -1})
	for first := 0; len(frontier) > 0; r.Depth++ {
		found := len(s.edges)
		var next []S
		for i, state := range frontier {
			here, choice := int32(first+i), int32(0)
			m.Next(state, func(n S, broken, _ string, _ ...any) {
				r.Transitions++
				switch way := (edge{here, choice}); {
				case r.Broken != "":
				case broken != "":
					r.Broken, r.Trace = broken, s.trace(way)
				case s.add(n, way):
					next = append(next, n)
				}
				choice++
			})
			if r.States = len(s.edges); r.Broken != "" || r.States > limit {
				return r
			}
		}
		frontier, first = next, found
	}
	r.Exhausted = true
	return r
}

// add reports whether n is new.
func (s *search[S]) add(n S, way edge) bool {
	h := hash{maphash.Comparable(s.seeds[0], n), maphash.Comparable(s.seeds[1], n)}
	if _, known := s.seen[h]; known {
		return false
	}
	s.seen[h] = struct{}{}
	s.edges = append(s.edges, way)
	return true
}

// trace goes the whole way again, and describes each step of it.
func (s *search[S]) trace(last edge) (steps []string) {
	var way []int32
	for e := last; e.from >= 0; e = s.edges[e.from] {
		way = append(way, e.choice)
	}
	state := s.model.Initial()
	for i := len(way) - 1; i >= 0; i-- {
		n, taken := int32(0), state
		s.model.Next(state, func(next S, _, format string, args ...any) {
			if n == way[i] {
				taken = next
				steps = append(steps, fmt.Sprintf(format, args...))
			}
			n++
		})
		state = taken
	}
	return steps
}
