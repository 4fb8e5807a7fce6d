package redisguard

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Every script has the caller's part between these. Its own first keys are the
// fences. Of its own arguments the first five are how many fences there are, how
// many locks are declared and how many of them held, an id of this write, and the
// time; then come the locks, those that are held first, and their tokens.
//
// A fence has a field for each lock. Fields that begin with a NUL, as no lock can,
// are the id of the last write and the time of the last new token. An id that is
// there is that of a write whose answer was lost: nothing but a claim has come
// since. A script has no rollback: the fences are raised before the caller's part,
// which may fail halfway, and has its id remembered after it.
const (
	before = `local function write(KEYS, ARGV)
`
	after = `
end
local fences, declared, held, id, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local known, takes = {}, {}
for i = 1, declared do takes[ARGV[5 + i]] = true end
for f = 1, fences do
  known[f] = {}
  local all = redis.call('HGETALL', KEYS[f])
  for i = 1, #all, 2 do known[f][all[i]] = all[i + 1] end
  if id ~= '' and known[f]['\0write'] == id then return {'again'} end
end
for f = 1, fences do
  local bound, other = {}, false
  for lock in pairs(known[f]) do
    if string.byte(lock) ~= 0 then
      bound[#bound + 1] = lock
      other = other or not takes[lock]
    end
  end
  if other then return {'other', tostring(f), unpack(bound)} end
  for i = 1, held do
    local seen = known[f][ARGV[5 + i]]
    if seen and tonumber(seen) > tonumber(ARGV[5 + declared + i]) then
      return {'stale', tostring(f), ARGV[5 + i], seen}
    end
  end
end
for f = 1, fences do
  for i = 1, declared do
    local lock, seen = ARGV[5 + i], known[f][ARGV[5 + i]]
    local token = i <= held and ARGV[5 + declared + i] or seen or '0'
    if token ~= seen then redis.call('HSET', KEYS[f], lock, token, '\0since', now) end
  end
end
local keys, args = {}, {}
for i = fences + 1, #KEYS do keys[#keys + 1] = KEYS[i] end
for i = 6 + declared + held, #ARGV do args[#args + 1] = ARGV[i] end
local result = write(keys, args)
if type(result) == 'table' and result.err then return result end
if id ~= '' then
  for f = 1, fences do redis.pcall('HSET', KEYS[f], '\0write', id) end
end
return {'done', result}`
)

// A script is a text with its name in Redis.
type script struct{ text, sha string }

func guarded(write string) script { return named(before + write + after) }

func named(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

func (g *Guard) run(ctx context.Context, h fence.Holding, s script, writes bool,
	keys []string, args ...any) (any, error) {
	result, err := g.send(ctx, h, s, writes, keys, args)
	if g.Once {
		err = fence.Settled(err)
	}
	return result, g.Observer.See(ctx, err)
}

func (g *Guard) send(ctx context.Context, h fence.Holding, s script, writes bool,
	keys []string, args []any) (any, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("redisguard: %w: no key to guard", fence.ErrNotApplied)
	}
	declared, err := h.Declare(g.Locks, keys[0])
	if err != nil {
		return nil, err
	}
	fences, err := g.fences(keys)
	if err != nil {
		return nil, fmt.Errorf("redisguard: %w: %w", fence.ErrNotApplied, err)
	}
	var locks, tokens []any
	for lock, token := range h.All() {
		locks, tokens = append(locks, lock), append(tokens, int64(token))
	}
	for _, lock := range declared {
		if !slices.Contains(locks, any(lock)) {
			locks = append(locks, lock)
		}
	}
	id := ""
	if writes {
		id = rand.Text()
	}
	if g.Do == nil {
		return nil, errors.New("redisguard: Guard.Do is missing")
	}
	own := []any{len(fences), len(locks), len(tokens), id, time.Now().UnixMilli()}
	answer, err := g.eval(ctx, s, append(fences, keys...), slices.Concat(own, locks, tokens, args))
	if err != nil {
		return nil, fmt.Errorf("redisguard: %q: %w", keys[0], err)
	}
	return g.read(answer, h, keys)
}

// fences returns the keys of the hashes that remember the tokens of these.
func (g *Guard) fences(keys []string) (fences []string, err error) {
	for _, key := range keys {
		own := g.Fence
		if own == "" {
			if own, err = FenceKey(key); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(fences, own) {
			fences = append(fences, own)
		}
	}
	for _, own := range fences {
		if slices.Contains(keys, own) {
			return nil, fmt.Errorf("%q cannot be both data and fence", own)
		}
	}
	return fences, nil
}

// eval runs a script, by its name if Redis knows it.
func (g *Guard) eval(ctx context.Context, s script, keys []string, args []any) (any, error) {
	command := []any{"EVALSHA", s.sha, len(keys)}
	for _, k := range keys {
		command = append(command, k)
	}
	command = append(command, args...)
	answer, err := g.Do(ctx, command...)
	if forgotten(err) {
		command[0], command[1] = "EVAL", s.text
		answer, err = g.Do(ctx, command...)
	}
	return answer, err
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
