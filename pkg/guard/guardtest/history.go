package guardtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

type kind string

const (
	writing  kind = "write"
	claiming kind = "claim"
	deleting kind = "delete"
	reading  kind = "read"
)

// An op is one call to a resource. All of a history use one lock, and a token
// is used by one writer only, one call after the other.
type op struct {
	kind          kind
	writer        int
	token         fence.Token // of a read: none
	text          string      // what was written or read; no two writes have the same
	found         bool        // of a read: that there was a text
	called, ended time.Duration
	err           error
}

func (o op) String() string {
	return fmt.Sprintf("%s by writer %d with token %d (%q, %v to %v, error %v)",
		o.kind, o.writer, o.token, o.text, o.called, o.ended, o.err)
}

func (o op) accepted() bool { return o.err == nil }

func (o op) refused() bool { return fence.Refused(o.err) }

// unknown reports whether o may have taken effect, or may still do so.
func (o op) unknown() bool {
	return o.err != nil && !o.refused() && !errors.Is(o.err, fence.ErrNotApplied)
}

// changes reports whether o is to change the text.
func (o op) changes() bool { return o.kind == writing || o.kind == deleting }

// A history is what was done with one resource, from its first use on.
type history struct {
	mu  sync.Mutex
	ops []op
}

func (h *history) add(o op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

// check looks for what a guard must never do, in time O(n log n), and returns
// the first case:
//
//   - a call that was accepted although one with a higher token had been before
//     it was made;
//   - a call that was refused although no higher token can have been seen;
//   - a read of a text after a change by a higher token, or of a text that was
//     refused;
//   - in the end, another text than the highest token's last.
//
// The last op must be a read that nothing overlaps.
func (h *history) check() error {
	for _, check := range []func([]op) error{checkAccepted, checkRefused, checkReads, checkEnd} {
		if err := check(h.ops); err != nil {
			return err
		}
	}
	return nil
}

// follow calls visit for every op in the order of the calls, with the op that
// has the highest token of those that ended before it and count.
func follow(ops []op, counts func(op) bool, visit func(highest *op, o op) error) error {
	called, ended := slices.Clone(ops), make([]op, 0, len(ops))
	for _, o := range ops {
		if counts(o) {
			ended = append(ended, o)
		}
	}
	slices.SortStableFunc(called, func(a, b op) int { return int(a.called - b.called) })
	slices.SortStableFunc(ended, func(a, b op) int { return int(a.ended - b.ended) })
	var highest *op
	i := 0
	for _, o := range called {
		for ; i < len(ended) && ended[i].ended < o.called; i++ {
			if highest == nil || ended[i].token > highest.token {
				highest = &ended[i]
			}
		}
		if err := visit(highest, o); err != nil {
			return err
		}
	}
	return nil
}

func checkAccepted(ops []op) error {
	accepted := func(o op) bool { return o.kind != reading && o.accepted() }
	return follow(ops, accepted, func(highest *op, o op) error {
		if accepted(o) && highest != nil && highest.token > o.token {
			return fmt.Errorf("accepted: %v, after %v", o, *highest)
		}
		return nil
	})
}

func checkRefused(ops []op) error {
	// When each token was first used in a call that may have been accepted.
	used := make(map[fence.Token]time.Duration)
	for _, o := range ops {
		if o.kind == reading || !o.accepted() && !o.unknown() {
			continue
		}
		if first, ok := used[o.token]; !ok || o.called < first {
			used[o.token] = o.called
		}
	}
	for _, o := range ops {
		if !o.refused() {
			continue
		}
		var stale *fence.StaleError
		if !errors.As(o.err, &stale) {
			return fmt.Errorf("refused with something else than a StaleError: %v", o)
		}
		first, ok := used[stale.Seen]
		if !ok || stale.Seen <= o.token || stale.Token != o.token || first > o.ended {
			return fmt.Errorf("refused without a reason: %v", o)
		}
	}
	return nil
}

func checkReads(ops []op) error {
	writes := make(map[string]op)
	for _, o := range ops {
		if o.kind == writing {
			writes[o.text] = o
		}
	}
	changed := func(o op) bool { return o.changes() && o.accepted() }
	return follow(ops, changed, func(highest *op, o op) error {
		if o.kind != reading || !o.accepted() || !o.found {
			return nil
		}
		w, ok := writes[o.text]
		switch {
		case !ok || w.called > o.ended:
			return fmt.Errorf("read what nobody had written: %v", o)
		case !w.accepted() && !w.unknown():
			return fmt.Errorf("%v, which comes from %v", o, w)
		case highest != nil && highest.token > w.token:
			return fmt.Errorf("%v, which comes from %v, after %v", o, w, *highest)
		}
		return nil
	})
}

func checkEnd(ops []op) error {
	end := ops[len(ops)-1]
	if end.kind != reading || !end.accepted() {
		return fmt.Errorf("the end is not a read: %v", end)
	}
	// Calls of one token come one after the other, so the last is the last.
	var last op // an absent text before any change
	for _, o := range ops {
		if o.changes() && o.accepted() && (o.token > last.token || o.token == last.token && o.called > last.called) {
			last = o
		}
	}
	same := func(o op) bool { return end.found == (o.kind == writing) && (!end.found || end.text == o.text) }
	if same(last) {
		return nil
	}
	for _, o := range ops {
		if o.changes() && o.unknown() && o.token >= last.token && same(o) {
			return nil
		}
	}
	return fmt.Errorf("the end is %v, want the outcome of %v", end, last)
}
