package fence

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A Holding is what a holder holds: one grant of a lock, and the grants of
// further locks that go with it. Every guard takes it first. The zero Holding is
// nobody's, and no guard accepts it.
type Holding struct {
	Lock  string // full name, "namespace/lock"
	Token Token  // of the grant of Lock

	// With has the tokens of further locks by their full names. Each is compared
	// with its own.
	With map[string]Token
}

// MaxLock is the longest full name of a lock, in bytes: a namespace, a slash,
// and a lock.
const MaxLock = 63 + 1 + 512

// CheckLock returns an error that matches [ErrInvalid] unless name can be the
// full name of a lock: UTF-8 of 1 to [MaxLock] bytes without control characters.
// The names of the resources of a guard keep to the same rule.
func CheckLock(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a name is empty", ErrInvalid)
	case len(name) > MaxLock:
		return fmt.Errorf("%w: a name has %d bytes, want at most %d: %.40q…", ErrInvalid, len(name), MaxLock, name)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the name %.100q is not UTF-8", ErrInvalid, name)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: the name %.100q has a control character", ErrInvalid, name)
		}
	}
	return nil
}

// All returns every lock that is held, in the order of the names, and its token.
func (h Holding) All() iter.Seq2[string, Token] {
	return func(yield func(string, Token) bool) {
		tokens := h.tokens()
		for _, lock := range slices.Sorted(maps.Keys(tokens)) {
			if !yield(lock, tokens[lock]) {
				return
			}
		}
	}
}

func (h Holding) tokens() map[string]Token {
	tokens := map[string]Token{h.Lock: h.Token}
	maps.Copy(tokens, h.With)
	return tokens
}

// Check returns an error that matches [ErrInvalid] unless h can be somebody's:
// names that can be those of locks, each with one valid token.
func (h Holding) Check() error {
	if _, twice := h.With[h.Lock]; twice {
		return fmt.Errorf("%w: %q has a token in Token and one in With", ErrInvalid, h.Lock)
	}
	for lock, token := range h.All() {
		if err := CheckLock(lock); err != nil {
			return err
		}
		if !token.Valid() {
			return fmt.Errorf("%w: %d of %q, want 1 to %d", ErrInvalid, token, lock, Max)
		}
	}
	return nil
}
