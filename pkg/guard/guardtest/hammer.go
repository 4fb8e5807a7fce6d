package guardtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Hammer has 32 writers in 4 processes compete for one resource with random
// tokens, and checks what happened in linear time; then it has a few compete
// for each of many resources, and checks that each was linearizable.
//
// It takes 10 seconds, 1 with -short, or GUARD_SECONDS; ROUNDS multiplies that.
func Hammer(t *testing.T, store func(*testing.T) Store) {
	seconds, rounds := 10, number(t, "ROUNDS", 1)
	if testing.Short() {
		seconds = 1
	}
	seconds = rounds * number(t, "GUARD_SECONDS", seconds)
	s := store(t)

	t.Run("the highest token wins among many writers", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
		defer cancel()
		h, err := hammer(ctx, t.Context(), s, crowd{writers: 32, processes: 4})
		if err == nil {
			err = h.check()
		}
		if err == nil {
			err = h.telling()
		}
		if err != nil {
			t.Error(err)
		}
		t.Log(h)
	})
	t.Run("a few writers see one order of everything", func(t *testing.T) {
		for i := range 10 * rounds {
			h, err := hammer(t.Context(), t.Context(), s, crowd{writers: 6, processes: 2, calls: 10})
			if err == nil {
				err = errors.Join(h.check(), h.linearizable(time.Minute))
			}
			if err != nil {
				t.Fatalf("resource %d: %v", i, err)
			}
		}
	})
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a number of at least 1", variable, text)
	}
	return n
}

// A crowd is who competes.
type crowd struct {
	writers, processes int
	calls              int // of each writer; 0 means until the context ends
}

// hammer lets a crowd loose on a new resource until every writer has made its
// calls or ctx ends. Calls under way at the end are waited for.
func hammer(ctx, patient context.Context, s Store, c crowd) (*history, error) {
	h := new(history)
	first, err := s.New(patient)
	if err != nil {
		return h, err
	}
	processes := []Resource{first}
	for len(processes) < c.processes {
		r, err := s.Reopen(patient, first)
		if err != nil {
			return h, err
		}
		processes = append(processes, r)
	}
	started := time.Now()
	var top atomic.Int64 // the highest round of tokens that was begun
	var all sync.WaitGroup
	for i := range c.writers {
		w := &writer{id: i, of: c.writers, r: processes[i%len(processes)], top: &top, started: started, history: h}
		all.Go(func() {
			for n := 0; ctx.Err() == nil && (c.calls == 0 || n < c.calls); n++ {
				w.step(patient)
			}
		})
	}
	all.Wait()
	end := &writer{id: -1, r: first, started: started, history: h}
	end.record(op{kind: reading}, func(o *op) (err error) {
		o.text, o.found, err = first.Read(patient)
		return err
	})
	return h, nil
}

// A writer is one of a crowd.
type writer struct {
	id, of  int
	r       Resource
	top     *atomic.Int64
	token   fence.Token
	left    int // how many calls it makes before it draws another token
	texts   int
	started time.Time
	history *history
}

// step makes one call.
func (w *writer) step(ctx context.Context) {
	if w.left == 0 {
		w.token, w.left = w.draw(), 1+rand.IntN(4)
	}
	w.left--
	switch n := rand.IntN(10); {
	case n < 5:
		w.texts++
		text := fmt.Sprintf("%d of writer %d", w.texts, w.id)
		w.record(op{kind: writing, token: w.token, text: text}, func(*op) error {
			return w.r.Write(ctx, holding(hammered, w.token), text)
		})
	case n < 7:
		w.record(op{kind: claiming, token: w.token}, func(*op) error { return w.r.Claim(ctx, holding(hammered, w.token)) })
	case n < 8:
		w.record(op{kind: deleting, token: w.token}, func(*op) error { return w.r.Delete(ctx, holding(hammered, w.token)) })
	default:
		w.record(op{kind: reading}, func(o *op) (err error) {
			o.text, o.found, err = w.r.Read(ctx)
			return err
		})
	}
}

const hammered = "suite/hammer"

// draw returns a token that no other writer uses, near the highest, mostly
// below it, seldom above. The writer itself may draw it again.
func (w *writer) draw() fence.Token {
	round := w.top.Load() + rand.Int64N(9) - 5
	round = max(round, 0)
	for {
		top := w.top.Load()
		if round <= top || w.top.CompareAndSwap(top, round) {
			return fence.Token(round*int64(w.of) + int64(w.id) + 1)
		}
	}
}

// record makes a call and adds it to the history.
func (w *writer) record(o op, call func(*op) error) {
	o.writer, o.called = w.id, time.Since(w.started)
	o.err = call(&o)
	o.ended = time.Since(w.started)
	w.history.add(o)
}

// count returns how the calls other than reads ended.
func (h *history) count() (accepted, stale, undecided int) {
	for _, o := range h.ops {
		switch {
		case o.kind == reading:
		case o.accepted():
			accepted++
		case o.refused():
			stale++
		default:
			undecided++
		}
	}
	return accepted, stale, undecided
}

// telling returns an error if the history is of no use as a test.
func (h *history) telling() error {
	if accepted, stale, undecided := h.count(); accepted == 0 || stale == 0 || undecided > accepted+stale {
		return errors.New("the calls were too seldom decided to tell anything")
	}
	return nil
}

func (h *history) String() string {
	accepted, stale, undecided := h.count()
	return fmt.Sprintf("%d calls: %d accepted, %d stale, %d undecided", len(h.ops), accepted, stale, undecided)
}
