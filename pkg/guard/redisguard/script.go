package redisguard

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Every script has the caller's part between these. Its own key is the fence; of
// its own arguments the first two are how many locks are declared and how many of
// them held, then come the locks, those that are held first, and their tokens. A
// script has no rollback: the fence is raised before the caller's part, which may
// fail halfway.
const (
	before = `local function write(KEYS, ARGV)
`
	after = `
end
local fence, declared, held = table.remove(KEYS, 1), tonumber(ARGV[1]), tonumber(ARGV[2])
local size, seen = redis.call('HLEN', fence), {}
for i = 1, declared do
  seen[i] = redis.call('HGET', fence, ARGV[2 + i])
  if size > 0 and (size ~= declared or not seen[i]) then
    return {'other', redis.call('HKEYS', fence)}
  end
  if i <= held and seen[i] and tonumber(seen[i]) > tonumber(ARGV[2 + declared + i]) then
    return {'stale', ARGV[2 + i], seen[i]}
  end
end
for i = 1, declared do
  local token = i <= held and ARGV[2 + declared + i] or seen[i] or '0'
  if token ~= seen[i] then redis.call('HSET', fence, ARGV[2 + i], token) end
end
for _ = 1, 2 + declared + held do table.remove(ARGV, 1) end
local result = write(KEYS, ARGV)
if type(result) == 'table' and result.err then return result end
return {'done', result}`
)

// A script is a text with its name in Redis.
type script struct{ text, sha string }

func guarded(write string) script {
	text := before + write + after
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// Run runs a Lua script of the caller as the write that is guarded, and returns
// what it returns: nil for Lua's nil and false. The script sees the keys as KEYS
// and the arguments as ARGV. The guard is that of the first key; all keys must be
// in its hash slot. As always, values go into the arguments, not into the text of
// the script, which Redis keeps. A script that fails does not undo what it had
// done.
func (g Guard) Run(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	return g.run(ctx, guarded(script), keys, args...)
}

func (g Guard) run(ctx context.Context, s script, keys []string, args ...any) (any, error) {
	result, err := g.send(ctx, s, keys, args)
	return result, g.OnRefusal.See(ctx, err)
}

func (g Guard) send(ctx context.Context, s script, keys []string, args []any) (any, error) {
	if len(keys) == 0 {
		return nil, errors.New("redisguard: no key to guard")
	}
	own, err := g.arguments(keys[0])
	if err != nil {
		return nil, err
	}
	fenceKey := g.Fence
	if fenceKey == "" {
		if fenceKey, err = FenceKey(keys[0]); err != nil {
			return nil, err
		}
	}
	if slices.Contains(keys, fenceKey) {
		return nil, fmt.Errorf("redisguard: %q cannot be both data and fence", fenceKey)
	}
	command := []any{"EVALSHA", s.sha, 1 + len(keys), fenceKey}
	for _, k := range keys {
		command = append(command, k)
	}
	command = slices.Concat(command, own, args)
	answer, err := g.Do(ctx, command...)
	if forgotten(err) {
		command[0], command[1] = "EVAL", s.text
		answer, err = g.Do(ctx, command...)
	}
	if err != nil {
		return nil, fmt.Errorf("redisguard: %q: %w", keys[0], err)
	}
	return g.read(answer, keys[0])
}

// forgotten reports whether Redis does not have the script, as after a restart,
// and so has not executed it.
func forgotten(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), "NOSCRIPT") {
			return true
		}
	}
	return false
}

// arguments are those of the script's own, if the guard is valid.
func (g Guard) arguments(key string) ([]any, error) {
	tokens := map[string]fence.Token{g.Lock: g.Token}
	for lock, token := range g.With {
		if lock == g.Lock {
			return nil, fmt.Errorf("%w: %q has a token in Token and one in With", fence.ErrInvalid, lock)
		}
		tokens[lock] = token
	}
	var locks, values []any
	for _, lock := range slices.Sorted(maps.Keys(tokens)) {
		token := tokens[lock]
		if err := fence.Check(lock, token); err != nil {
			return nil, err
		}
		if len(g.Locks) > 0 && !slices.Contains(g.Locks, lock) {
			return nil, g.otherLock(lock, g.Locks, key)
		}
		locks, values = append(locks, lock), append(values, int64(token))
	}
	declared := slices.Compact(slices.Sorted(slices.Values(g.Locks)))
	for _, lock := range declared {
		if lock == "" {
			return nil, fence.Check(lock, g.Token)
		}
		if _, held := tokens[lock]; !held {
			locks = append(locks, lock)
		}
	}
	return slices.Concat([]any{len(locks), len(values)}, locks, values), nil
}

// read tells what the answer of the script means.
func (g Guard) read(answer any, key string) (any, error) {
	parts, _ := answer.([]any)
	if len(parts) == 0 {
		return nil, fmt.Errorf("redisguard: %q: not an answer of the script: %v", key, answer)
	}
	switch text(parts[0]) {
	case "done":
		if len(parts) == 1 {
			return nil, nil // what Lua's nil becomes
		}
		return parts[1], nil
	case "stale":
		lock := text(parts[1])
		seen, err := fence.Parse(text(parts[2]))
		return nil, cmp.Or(err, error(&fence.StaleError{Lock: lock, Token: g.token(lock), Seen: seen, Resource: key}))
	case "other":
		var bound []string
		for _, lock := range parts[1].([]any) {
			bound = append(bound, text(lock))
		}
		return nil, g.otherLock(g.Lock, bound, key)
	}
	return nil, fmt.Errorf("redisguard: %q: not an answer of the script: %v", key, answer)
}

func (g Guard) token(lock string) fence.Token {
	if lock == g.Lock {
		return g.Token
	}
	return g.With[lock]
}

func (g Guard) otherLock(lock string, bound []string, key string) error {
	return &fence.OtherLockError{Lock: lock, Bound: strings.Join(slices.Sorted(slices.Values(bound)), ", "), Resource: key}
}

// text is a string of Redis, which some clients return as bytes.
func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	s, _ := v.(string)
	return s
}
