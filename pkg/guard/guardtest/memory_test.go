package guardtest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A bug is what one of the stores here does wrong.
type bug string

const (
	noBug           bug = "none"
	checksNothing   bug = "checks nothing"
	storesNothing   bug = "does not store the token"
	reversed        bug = "compares the wrong way round"
	strict          bug = "refuses an equal token"
	comparesText    bug = "compares tokens as text"
	roundsTokens    bug = "compares tokens as 32 bit floats"
	racy            bug = "checks, then writes"
	writesFirst     bug = "writes, then checks"
	deleteForgets   bug = "forgets the token with a delete"
	deleteUnchecked bug = "does not check a delete"
	deleteUnstored  bug = "does not store the token of a delete"
	deleteFreesLock bug = "forgets the lock with a delete"
	claimNothing    bug = "does nothing on a claim"
	claimUnchecked  bug = "does not check a claim"
	claimCreates    bug = "creates a text on a claim"
	claimDeletes    bug = "deletes the text on a claim"
	forgetsRestart  bug = "remembers tokens in the process"
	ignoresBinding  bug = "ignores the binding"
	bindsLast       bug = "binds to the last lock"
	oneTokenForAll  bug = "keeps one token for all declared locks"
	takesUndeclared bug = "takes locks that were not declared"
	foldsCase       bug = "ignores the case of names"
	trimsNames      bug = "ignores spaces around names"
	cutsNames       bug = "cuts names at 255 bytes"
	takesZero       bug = "takes token zero"
	takesHuge       bug = "takes tokens above the largest"
	takesNoName     bug = "takes an empty name"
	refusesNewest   bug = "refuses at times who is not stale"
	losesWrites     bug = "loses a write at times"
	lateReads       bug = "reads an old text at times"
	lateRefusal     bug = "tells another token than it has seen"
	vagueRefusal    bug = "does not say what was refused"
	trimsText       bug = "trims texts"
	hidesEmpty      bug = "takes an empty text for none"
	ignoresCancel   bug = "does what was cancelled"
	callsItStale    bug = "calls what was cancelled stale"
)

// A memory is a store in memory with at most one bug.
type memory struct{ bug bug }

func (m memory) New(_ context.Context, locks ...string) (Resource, error) {
	return &cell{bug: m.bug, state: &state{declared: locks, seen: map[string]fence.Token{}}}, nil
}

func (m memory) Reopen(_ context.Context, r Resource) (Resource, error) {
	old := r.(*cell)
	if m.bug == forgetsRestart {
		old.state.mu.Lock()
		defer old.state.mu.Unlock()
		clear(old.state.seen)
	}
	return &cell{bug: m.bug, state: old.state}, nil
}

// A state is what outlives a process.
type state struct {
	mu             sync.Mutex
	declared       []string
	bound          string
	seen           map[string]fence.Token
	text, previous string
	found          bool
	calls          int
}

type cell struct {
	bug   bug
	state *state
}

func (c *cell) Write(ctx context.Context, lock string, token fence.Token, text string) error {
	return c.change(ctx, lock, token, writing, func(s *state) {
		if c.bug == trimsText {
			text = strings.TrimSpace(text)
		}
		s.previous, s.text, s.found = s.text, text, text != "" || c.bug != hidesEmpty
	})
}

func (c *cell) Claim(ctx context.Context, lock string, token fence.Token) error {
	if c.bug == claimNothing {
		return fence.Check(lock, token)
	}
	return c.change(ctx, lock, token, claiming, func(s *state) {
		switch c.bug {
		case claimCreates:
			s.found = true
		case claimDeletes:
			s.text, s.found = "", false
		}
	})
}

func (c *cell) Delete(ctx context.Context, lock string, token fence.Token) error {
	return c.change(ctx, lock, token, deleting, func(s *state) {
		s.previous, s.text, s.found = s.text, "", false
		switch c.bug {
		case deleteForgets:
			clear(s.seen)
		case deleteFreesLock:
			s.bound = ""
			clear(s.seen)
		}
	})
}

func (c *cell) Read(context.Context) (string, bool, error) {
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if c.bug == lateReads && s.calls%7 == 0 && s.found {
		return s.previous, true, nil
	}
	return s.text, s.found, nil
}

// change is the guard.
func (c *cell) change(ctx context.Context, lock string, token fence.Token, k kind, apply func(*state)) error {
	if err := context.Cause(ctx); err != nil && c.bug != ignoresCancel {
		if c.bug == callsItStale {
			return &fence.StaleError{Lock: lock, Token: token, Seen: token + 1, Resource: "cell"}
		}
		return err
	}
	if err := c.valid(lock, token); err != nil {
		return err
	}
	name := c.name(lock)
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if c.bug == losesWrites && s.calls%9 == 0 && k == writing {
		return nil
	}
	if c.bug == writesFirst {
		apply(s)
	}
	if err := c.refusal(name, lock, token, k); err != nil {
		return err
	}
	if c.bug == racy {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	if s.bound == "" || c.bug == bindsLast {
		s.bound = name
	}
	switch {
	case c.bug == storesNothing, c.bug == deleteUnstored && k == deleting:
	case c.bug == oneTokenForAll:
		for _, l := range append(s.declared, name) {
			s.seen[c.name(l)] = token
		}
	default:
		s.seen[name] = token
	}
	apply(s)
	return nil
}

func (c *cell) refusal(name, lock string, token fence.Token, k kind) error {
	s := c.state
	bound := slices.Sorted(maps.Keys(map[string]bool{s.bound: true}))
	if len(s.declared) > 0 {
		bound = nil
		for _, l := range s.declared {
			bound = append(bound, c.name(l))
		}
	}
	switch {
	case c.bug == ignoresBinding, c.bug == bindsLast, c.bug == takesUndeclared && len(s.declared) > 0:
	case len(s.declared) == 0 && s.bound == "":
	case !slices.Contains(bound, name):
		return &fence.OtherLockError{Lock: lock, Bound: strings.Join(bound, ", "), Resource: "cell"}
	}
	seen := s.seen[name]
	if c.bug == ignoresBinding {
		for _, t := range s.seen {
			seen = max(seen, t)
		}
	}
	stale := token < seen
	switch {
	case c.bug == checksNothing, c.bug == deleteUnchecked && k == deleting, c.bug == claimUnchecked && k == claiming:
		stale = false
	case c.bug == reversed:
		stale = seen != 0 && token > seen
	case c.bug == strict:
		stale = token <= seen
	case c.bug == comparesText:
		stale = seen != 0 && token.String() < seen.String()
	case c.bug == roundsTokens:
		stale = float32(token) < float32(seen)
	case c.bug == refusesNewest && s.calls%11 == 0 && seen > 0:
		stale = true
	}
	if !stale {
		return nil
	}
	err := &fence.StaleError{Lock: lock, Token: token, Seen: seen, Resource: "cell"}
	switch c.bug {
	case lateRefusal:
		err.Seen += 1000
	case vagueRefusal:
		err.Resource = ""
	}
	return err
}

func (c *cell) valid(lock string, token fence.Token) error {
	switch {
	case c.bug == takesZero && token == 0, c.bug == takesHuge && token > fence.Max, c.bug == takesNoName && lock == "":
		return nil
	}
	return fence.Check(lock, token)
}

// name returns what the store takes for the name of a lock.
func (c *cell) name(lock string) string {
	switch c.bug {
	case foldsCase:
		return strings.ToLower(lock)
	case trimsNames:
		return strings.TrimSpace(lock)
	case cutsNames:
		return lock[:min(len(lock), 255)]
	}
	return lock
}

// An unsure store makes of every third call an error: the call was applied, or
// not, or is known not to have been.
type unsure struct{ memory }

func (u unsure) New(ctx context.Context, locks ...string) (Resource, error) {
	r, err := u.memory.New(ctx, locks...)
	return &unsureCell{Resource: r}, err
}

func (u unsure) Reopen(ctx context.Context, r Resource) (Resource, error) {
	again, err := u.memory.Reopen(ctx, r.(*unsureCell).Resource)
	return &unsureCell{Resource: again}, err
}

type unsureCell struct {
	Resource
	mu    sync.Mutex
	calls int
}

func (u *unsureCell) Write(ctx context.Context, lock string, token fence.Token, text string) error {
	u.mu.Lock()
	u.calls++
	n := u.calls
	u.mu.Unlock()
	switch n % 12 {
	case 3:
		return ErrNotApplied
	case 6:
		return errors.New("the request was lost")
	case 9:
		return cmp.Or(u.Resource.Write(ctx, lock, token, text), errors.New("the answer was lost"))
	}
	return u.Resource.Write(ctx, lock, token, text)
}
