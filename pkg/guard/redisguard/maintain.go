package redisguard

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

var (
	look  = named(`return {'seen', unpack(redis.call('HGETALL', KEYS[1]))}`)
	reset = named(`redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], '\0since', ARGV[1])
for i = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
return {'done'}`)
	prune = named(`local since = redis.call('HGET', KEYS[1], '\0since')
if not since or tonumber(since) >= tonumber(ARGV[1]) or redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
return redis.call('DEL', KEYS[1])`)
)

// Seen returns what is known of a key: the largest token of each lock that it is
// bound to, zero where none was seen. Of a key that was never guarded it is empty.
func (g *Guard) Seen(ctx context.Context, key string) (map[string]fence.Token, error) {
	fences, err := g.fences([]string{key})
	if err != nil {
		return nil, fmt.Errorf("redisguard: %w", err)
	}
	answer, err := g.eval(ctx, look, fences, nil)
	if err != nil {
		return nil, fmt.Errorf("redisguard: seen %q: %w", key, err)
	}
	all := list(answer)
	if len(all)%2 != 1 || text(all[0]) != "seen" {
		return nil, fmt.Errorf("redisguard: seen %q: not an answer of the script: %.200v", key, answer)
	}
	seen := make(map[string]fence.Token)
	for i := 1; i < len(all); i += 2 {
		lock := text(all[i])
		if strings.HasPrefix(lock, "\x00") {
			continue
		}
		seen[lock] = 0
		if s := text(all[i+1]); s != "0" {
			if seen[lock], err = fence.Parse(s); err != nil {
				return nil, fmt.Errorf("redisguard: seen %q: %w", key, err)
			}
		}
	}
	return seen, nil
}

// Reset has a key take tokens from those of the holding on, and binds it to the
// declared locks, whatever was seen before. It repairs what a wrong token has shut,
// one that no grant had. It is for an operator: a holder that was replaced is
// accepted again if its token is not below the new one, so take that of a grant
// made now. Where keys share a fence it resets all of them.
func (g *Guard) Reset(ctx context.Context, h fence.Holding, key string) error {
	declared, err := h.Declare(g.Locks, key)
	if err != nil {
		return err
	}
	fences, err := g.fences([]string{key})
	if err != nil {
		return fmt.Errorf("redisguard: %w: %w", fence.ErrNotApplied, err)
	}
	args := []any{time.Now().UnixMilli()}
	for _, lock := range declared {
		var token fence.Token
		for held, t := range h.All() {
			if held == lock {
				token = t
			}
		}
		args = append(args, lock, int64(token))
	}
	if _, err := g.eval(ctx, reset, fences, args); err != nil {
		return fmt.Errorf("redisguard: reset %q: %w", key, err)
	}
	return nil
}

// Prune forgets the tokens of keys that begin with prefix, do not exist, and saw
// their last new token before a time. It returns how many it has forgotten. It is
// safe if no holder that was replaced before that time is still to write: a month
// is a good choice, where no process sleeps for longer. A fence that many keys
// share is not pruned. It looks through all keys of the server that Do reaches:
// prune each primary of a cluster.
func (g *Guard) Prune(ctx context.Context, prefix string, before time.Time) (keys int, err error) {
	for _, form := range []struct{ begin, end string }{{"fence:{", "}"}, {"fence/", ""}} {
		for cursor := "0"; ; {
			answer, err := g.Do(ctx, "SCAN", cursor, "MATCH", form.begin+literal.Replace(prefix)+"*", "COUNT", 1000)
			if err != nil {
				return keys, fmt.Errorf("redisguard: prune: %w", err)
			}
			page := list(answer)
			if len(page) != 2 || !number.MatchString(text(page[0])) {
				return keys, fmt.Errorf("redisguard: prune: not an answer of SCAN: %.200v", answer)
			}
			for _, found := range list(page[1]) {
				own := text(found)
				key := strings.TrimSuffix(strings.TrimPrefix(own, form.begin), form.end)
				if again, err := FenceKey(key); err != nil || again != own {
					continue // somebody else's
				}
				n, err := g.eval(ctx, prune, []string{own, key}, []any{before.UnixMilli()})
				if err != nil {
					return keys, fmt.Errorf("redisguard: prune %q: %w", key, err)
				}
				if n == any(int64(1)) {
					keys++
				}
			}
			if cursor = text(page[0]); cursor == "0" {
				break
			}
		}
	}
	return keys, nil
}

var number = regexp.MustCompile(`^[0-9]+$`)

// literal takes out what SCAN reads as a pattern.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
