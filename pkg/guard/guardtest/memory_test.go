package guardtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

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
	mergesNames     bug = "replaces what is not UTF-8 in names"
	takesControl    bug = "takes control characters in names"
	takesLongNames  bug = "takes names of any length"
	neverWidens     bug = "refuses a lock that is added"
	narrows         bug = "takes a writer that leaves out a lock"
	forgetsWidening bug = "binds to less than was declared"
	freesWidening   bug = "takes any lock for one that is added"
	firstOfTwo      bug = "compares only the first of two tokens"
	deniesTwice     bug = "says that nothing was changed when the first of two attempts was applied"
	refusesTwice    bug = "calls the second of two attempts stale"
	sleepsInside    bug = "has a sleeping holder keep the others out"
	wakesUp         bug = "takes what a sleeping holder had decided"
	seesNothing     bug = "does not tell what was seen"
	resetsNothing   bug = "does not take a smaller token by a reset"
	resetKeepsLock  bug = "does not take another lock by a reset"
	resetsUnchecked bug = "resets to anything"
	prunesNothing   bug = "forgets nothing on demand"
	prunesAll       bug = "forgets what is not old enough"
)

// A memory is a store in memory with at most one bug.
type memory struct{ bug bug }

func (m memory) New(_ context.Context, locks ...string) (Resource, error) {
	return &cell{bug: m.bug, declared: locks, state: &state{seen: map[string]fence.Token{}}}, nil
}

func (m memory) Reopen(_ context.Context, r Resource, locks ...string) (Resource, error) {
	old := r.(*cell)
	if m.bug == forgetsRestart {
		old.state.mu.Lock()
		defer old.state.mu.Unlock()
		clear(old.state.seen)
	}
	return &cell{bug: m.bug, declared: locks, state: old.state}, nil
}

// A state is what outlives a process.
type state struct {
	mu             sync.Mutex
	seen           map[string]fence.Token // by the locks that it is bound to
	raised         time.Time
	last           string // id of the last write or delete
	text, previous string
	found          bool
	calls          int
}

type cell struct {
	bug      bug
	declared []string
	state    *state
	between  func() // between the two times that the next change arrives
	stopped  func() // while the next change is about to take effect
}

func (c *cell) Write(ctx context.Context, h fence.Holding, text string) error {
	return c.change(ctx, h, writing, func(s *state) {
		if c.bug == trimsText {
			text = strings.TrimSpace(text)
		}
		s.previous, s.text, s.found = s.text, text, text != "" || c.bug != hidesEmpty
	})
}

func (c *cell) Claim(ctx context.Context, h fence.Holding) error {
	if c.bug == claimNothing {
		return h.Check()
	}
	return c.change(ctx, h, claiming, func(s *state) {
		switch c.bug {
		case claimCreates:
			s.found = true
		case claimDeletes:
			s.text, s.found = "", false
		}
	})
}

func (c *cell) Delete(ctx context.Context, h fence.Holding) error {
	return c.change(ctx, h, deleting, func(s *state) {
		s.previous, s.text, s.found = s.text, "", false
		switch c.bug {
		case deleteForgets:
			for lock := range s.seen {
				s.seen[lock] = 0
			}
		case deleteFreesLock:
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

// change is the guard. What is sent twice has the same id.
func (c *cell) change(ctx context.Context, h fence.Holding, k kind, apply func(*state)) error {
	if err := context.Cause(ctx); err != nil && c.bug != ignoresCancel {
		if c.bug == callsItStale {
			return &fence.StaleError{Lock: h.Lock, Token: h.Token, Seen: h.Token + 1, Resource: "cell"}
		}
		return err
	}
	if err := c.valid(h); err != nil {
		return err
	}
	id := rand.Text()
	if c.between == nil {
		return c.attempt(ctx, h, k, id, apply)
	}
	_ = c.attempt(ctx, h, k, id, apply)
	c.between()
	err := c.attempt(ctx, h, k, id, apply)
	if c.bug == deniesTwice {
		err = fence.Settled(err)
	}
	return err
}

func (c *cell) attempt(ctx context.Context, h fence.Holding, k kind, id string, apply func(*state)) error {
	s := c.state
	if c.stopped != nil && c.bug != sleepsInside && c.bug != wakesUp {
		c.stopped()
	}
	for !s.mu.TryLock() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		runtime.Gosched()
	}
	defer s.mu.Unlock()
	s.calls++
	if k != claiming && s.last == id && c.bug != refusesTwice {
		return nil // the answer to this was lost
	}
	if c.bug == losesWrites && s.calls%9 == 0 && k == writing {
		return nil
	}
	if c.bug == writesFirst {
		apply(s)
	}
	declared, err := c.declare(h)
	if err == nil {
		err = c.refusal(declared, h, k)
	}
	if err != nil {
		if c.bug == refusesTwice {
			return fence.Settled(err)
		}
		return err
	}
	switch {
	case c.stopped == nil:
	case c.bug == sleepsInside:
		c.stopped()
	case c.bug == wakesUp:
		s.mu.Unlock()
		c.stopped()
		s.mu.Lock()
	}
	if c.bug == racy {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	c.remember(declared, h, k)
	if k != claiming {
		s.last = id
	}
	apply(s)
	return nil
}

func (c *cell) declare(h fence.Holding) ([]string, error) {
	if c.bug == takesUndeclared {
		return append(slices.Clone(c.declared), h.Lock), nil
	}
	var locks []string
	for _, lock := range c.declared {
		locks = append(locks, c.name(lock))
	}
	named := fence.Holding{Lock: c.name(h.Lock), Token: h.Token, With: h.With}
	if named.Check() != nil {
		return []string{named.Lock}, nil // a bug has let it pass
	}
	declared, err := named.Declare(locks, "cell")
	var other *fence.OtherLockError
	if errors.As(err, &other) {
		other.Lock = h.Lock
	}
	return declared, err
}

func (c *cell) remember(declared []string, h fence.Holding, k kind) {
	s := c.state
	if c.bug == bindsLast {
		clear(s.seen)
	}
	if c.bug != forgetsWidening || len(s.seen) == 0 {
		for _, lock := range declared {
			s.seen[lock] += 0 // bound, at least
		}
	}
	switch {
	case c.bug == storesNothing, c.bug == deleteUnstored && k == deleting:
	case c.bug == oneTokenForAll:
		for _, lock := range declared {
			s.seen[lock] = h.Token
		}
	default:
		for lock, token := range h.All() {
			if s.seen[c.name(lock)] < token {
				s.raised = time.Now()
			}
			s.seen[c.name(lock)] = token
		}
	}
}

func (c *cell) refusal(declared []string, h fence.Holding, k kind) error {
	s := c.state
	named := fence.Holding{Lock: c.name(h.Lock), Token: h.Token, With: h.With}
	if c.bug == firstOfTwo {
		named.With = nil
	}
	err := named.Admit(declared, s.seen, "cell")
	var other *fence.OtherLockError
	if errors.As(err, &other) {
		other.Lock = h.Lock
		switch {
		case c.bug == ignoresBinding, c.bug == bindsLast, c.bug == takesUndeclared && len(c.declared) > 0:
		case c.bug == narrows && len(s.seen) > 1:
		case c.bug == freesWidening && len(declared) > 1:
		default:
			return err
		}
		err = nil
	}
	if c.bug == neverWidens && len(s.seen) > 0 && len(declared) > len(s.seen) {
		return &fence.OtherLockError{Lock: h.Lock, Bound: strings.Join(slices.Collect(maps.Keys(s.seen)), ", "), Resource: "cell"}
	}
	seen, token := s.seen[named.Lock], h.Token
	if c.bug == ignoresBinding {
		for _, t := range s.seen {
			seen = max(seen, t)
		}
	}
	switch {
	case c.bug == checksNothing, c.bug == deleteUnchecked && k == deleting, c.bug == claimUnchecked && k == claiming:
		return nil
	case c.bug == reversed && (seen == 0 || token <= seen), c.bug == strict && token > seen,
		c.bug == comparesText && (seen == 0 || token.String() >= seen.String()), c.bug == roundsTokens && float32(token) >= float32(seen):
		return nil
	case c.bug == reversed, c.bug == strict, c.bug == comparesText, c.bug == roundsTokens,
		c.bug == ignoresBinding && token < seen, c.bug == refusesNewest && s.calls%11 == 0 && seen > 0:
		return &fence.StaleError{Lock: h.Lock, Token: token, Seen: seen, Resource: "cell"}
	}
	var stale *fence.StaleError
	if errors.As(err, &stale) {
		if stale.Lock == named.Lock {
			stale.Lock = h.Lock
		}
		switch c.bug {
		case lateRefusal:
			stale.Seen += 1000
		case vagueRefusal:
			stale.Resource = ""
		}
	}
	return err
}

func (c *cell) Seen(context.Context) (map[string]fence.Token, error) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	if c.bug == seesNothing {
		return nil, nil
	}
	return maps.Clone(c.state.seen), nil
}

func (c *cell) Reset(_ context.Context, h fence.Holding) error {
	if err := h.Check(); err != nil && c.bug != resetsUnchecked {
		return err
	}
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, bound := s.seen[h.Lock]; c.bug == resetsNothing && bound || c.bug == resetKeepsLock && !bound {
		return nil
	}
	clear(s.seen)
	s.seen[h.Lock] = h.Token
	return nil
}

func (c *cell) Prune(_ context.Context, before time.Time) error {
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.found && c.bug != prunesNothing && (s.raised.Before(before) || c.bug == prunesAll) {
		clear(s.seen)
	}
	return nil
}

func (c *cell) Twice(between func()) Resource {
	return &cell{bug: c.bug, declared: c.declared, state: c.state, between: between}
}

func (c *cell) Asleep(stopped func()) Resource {
	return &cell{bug: c.bug, declared: c.declared, state: c.state, stopped: stopped}
}

func (c *cell) valid(h fence.Holding) error {
	long := len(h.Lock) > fence.MaxLock
	control := strings.ContainsFunc(h.Lock, unicode.IsControl)
	switch {
	case c.bug == takesZero && h.Token == 0, c.bug == takesHuge && h.Token > fence.Max, c.bug == takesNoName && h.Lock == "",
		c.bug == mergesNames && !utf8.ValidString(h.Lock), c.bug == takesControl && control, c.bug == takesLongNames && long:
		return nil
	}
	return h.Check()
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
	case mergesNames:
		return strings.ToValidUTF8(lock, "?")
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

func (u unsure) Reopen(ctx context.Context, r Resource, locks ...string) (Resource, error) {
	again, err := u.memory.Reopen(ctx, r.(*unsureCell).Resource, locks...)
	return &unsureCell{Resource: again}, err
}

type unsureCell struct {
	Resource
	mu    sync.Mutex
	calls int
}

func (u *unsureCell) Write(ctx context.Context, h fence.Holding, text string) error {
	u.mu.Lock()
	u.calls++
	n := u.calls
	u.mu.Unlock()
	switch n % 12 {
	case 3:
		return fence.ErrNotApplied
	case 6:
		return errors.New("the request was lost")
	case 9:
		return cmp.Or(u.Resource.Write(ctx, h, text), errors.New("the answer was lost"))
	}
	return u.Resource.Write(ctx, h, text)
}
