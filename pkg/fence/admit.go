package fence

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Declare is the first half of every guard's rule. It returns the locks that
// share a resource, sorted: those of the guard's settings or, where these name
// none, those that are held. It fails with [ErrInvalid] for what can be nobody's
// and with an [OtherLockError] for a lock that is held and not declared. It needs
// no store, so guards call it before they send anything.
func (h Holding) Declare(locks []string, resource string) ([]string, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	declared := slices.Compact(slices.Sorted(slices.Values(locks)))
	for _, lock := range declared {
		if err := CheckLock(lock); err != nil {
			return nil, fmt.Errorf("of the declared locks: %w", err)
		}
	}
	if len(declared) == 0 {
		return slices.Sorted(maps.Keys(h.tokens())), nil
	}
	for lock := range h.All() {
		if !slices.Contains(declared, lock) {
			return nil, &OtherLockError{Lock: lock, Bound: strings.Join(declared, ", "), Resource: resource, NotApplied: true}
		}
	}
	return declared, nil
}

// Admit is the other half. Seen is what the resource knows: the largest token of
// each lock that it is bound to, or zero of a lock whose token it has not seen.
// The declared locks must be all of those or more; then the resource is bound to
// all that are declared. And no token may be below the one that was seen.
//
// So a lock can be added to those that share a resource, by declaring it in
// every writer. One that leaves out a lock is refused, for good.
func (h Holding) Admit(declared []string, seen map[string]Token, resource string) error {
	for lock := range seen {
		if !slices.Contains(declared, lock) {
			bound := strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
			return &OtherLockError{Lock: h.Lock, Bound: bound, Resource: resource}
		}
	}
	for lock, token := range h.All() {
		if seen[lock] > token {
			return &StaleError{Lock: lock, Token: token, Seen: seen[lock], Resource: resource}
		}
	}
	return nil
}
