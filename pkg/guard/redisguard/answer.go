package redisguard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// read tells what the answer of a guarded script means.
func (g *Guard) read(answer any, h fence.Holding, keys []string) (any, error) {
	odd := fmt.Errorf("redisguard: %q: not an answer of the script: %.200v", keys[0], answer)
	parts := list(answer)
	if len(parts) == 0 {
		return nil, odd
	}
	switch kind := text(parts[0]); {
	case kind == "done" && len(parts) == 1:
		return nil, nil // what Lua's nil becomes
	case kind == "done" && len(parts) == 2:
		return parts[1], nil
	case kind == "again" && len(parts) == 1:
		return nil, fmt.Errorf("redisguard: %q: %w", keys[0], ErrAnswerLost)
	case kind == "stale" && len(parts) == 4:
		lock := text(parts[2])
		seen, err := fence.Parse(text(parts[3]))
		for held, token := range h.All() {
			if held == lock && err == nil && seen > token {
				return nil, &fence.StaleError{Lock: lock, Token: token, Seen: seen, Resource: g.which(parts[1], keys)}
			}
		}
	case kind == "other" && len(parts) > 2:
		var bound []string
		for _, lock := range parts[2:] {
			bound = append(bound, text(lock))
		}
		slices.Sort(bound)
		return nil, &fence.OtherLockError{Lock: h.Lock, Bound: strings.Join(bound, ", "), Resource: g.which(parts[1], keys)}
	}
	return nil, odd
}

// which key the fence with a number is of. One that many share is of the first.
func (g *Guard) which(number any, keys []string) string {
	n, err := strconv.Atoi(text(number))
	if err != nil || g.Fence != "" || n < 1 || n > len(keys) {
		n = 1
	}
	return keys[n-1]
}

// list is an array of Redis, which some clients return in another type, or nil.
func list(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case []string:
		all := make([]any, len(v))
		for i, s := range v {
			all[i] = s
		}
		return all
	case [][]byte:
		all := make([]any, len(v))
		for i, b := range v {
			all[i] = b
		}
		return all
	}
	return nil
}

// text is a string of Redis, which some clients return as bytes.
func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	s, _ := v.(string)
	return s
}
