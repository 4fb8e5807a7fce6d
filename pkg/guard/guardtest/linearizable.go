package guardtest

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// guarded is all that the model of a resource remembers.
type guarded struct {
	token fence.Token // the highest that was seen
	text  string
	found bool
}

// model is the specification of a resource that belongs to one lock.
var model = porcupine.Model{
	Init: func() any { return guarded{} },
	Step: func(state, input, _ any) (bool, any) {
		s, o := state.(guarded), input.(op)
		if o.kind == reading {
			return o.found == s.found && o.text == s.text, s
		}
		var stale *fence.StaleError
		if errors.As(o.err, &stale) {
			return s.token > o.token && s.token == stale.Seen, s
		}
		switch {
		case o.refused():
			return false, s
		case o.token < s.token:
			return o.unknown(), s
		}
		s.token = o.token
		switch o.kind {
		case writing:
			s.text, s.found = o.text, true
		case deleting:
			s.text, s.found = "", false
		}
		return true, s
	},
	DescribeOperation: func(input, _ any) string { return input.(op).String() },
}

// linearizable checks that there is one order of the ops, in agreement with
// real time, in which a resource without any concurrency would have answered
// the same. It is for short histories.
func (h *history) linearizable(timeout time.Duration) error {
	var ops []porcupine.Operation
	for i, o := range h.ops {
		p := porcupine.Operation{ClientId: o.writer, Input: o, Call: int64(o.called), Return: int64(o.ended)}
		switch {
		case o.kind == reading && !o.accepted(), errors.Is(o.err, fence.ErrNotApplied):
			continue
		case o.unknown():
			// It may take effect at any later time, while its writer goes on.
			p.ClientId, p.Return = -2-i, math.MaxInt64
		}
		ops = append(ops, p)
	}
	switch porcupine.CheckOperationsTimeout(model, ops, timeout) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%d operations could not be checked in %v", len(ops), timeout)
	}
	return fmt.Errorf("no order of these explains what they returned: %v", h.ops)
}
