package redisguard

import (
	"context"
	"errors"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Do sends one command to Redis and returns the answer. With go-redis:
//
//	func(ctx context.Context, args ...any) (any, error) { return client.Do(ctx, args...).Result() }
type Do func(ctx context.Context, args ...any) (any, error)

// A Guard guards keys. It is safe for concurrent use, and must not be changed
// after the first.
//
// Its methods fail with [fence.ErrStale] or [fence.ErrOtherLock] if it refuses,
// with [fence.ErrInvalid] for what can be nobody's, and, before anything is sent,
// with [fence.ErrNotApplied] for a key that cannot be guarded. An error of Do means
// that the write may have been made; the same holder may repeat it.
type Guard struct {
	// Do reaches Redis. Required.
	Do Do

	// Locks are the full names of the locks that share every key, whether a caller
	// holds them or not. None means those that the caller holds. See
	// [fence.Holding.Admit] for how one is added.
	Locks []string

	// Fence is the key of the hash that remembers the tokens of all keys. It must
	// be in the hash slot of the data. Empty means one for each key, see
	// [FenceKey].
	Fence string

	// Once says that Do never sends a command again by itself, as with MaxRetries
	// of -1 in go-redis. Then a refusal means that nothing was changed. Without it,
	// a client that got no answer may have sent a write before that was applied.
	Once bool

	// Observer is told of every refusal. Nil means nobody is.
	Observer fence.Observer
}

// ErrAnswerLost means that a script has run, in an attempt whose answer was lost.
var ErrAnswerLost = errors.New("the script has run, and its answer was lost")

var (
	set     = guarded(`return redis.call('SET', KEYS[1], ARGV[1])`)
	del     = guarded(`return redis.call('DEL', KEYS[1])`)
	nothing = guarded(``)
)

// Set sets key to value, which has no expiry.
func (g *Guard) Set(ctx context.Context, h fence.Holding, key string, value any) error {
	return done(g.run(ctx, h, set, true, []string{key}, value))
}

// Delete deletes key. The tokens stay known.
func (g *Guard) Delete(ctx context.Context, h fence.Holding, key string) error {
	return done(g.run(ctx, h, del, true, []string{key}))
}

// Claim has the guard of the keys see the tokens and changes nothing else. A new
// holder that is to read, decide, and write, claims first: until then a write of
// the holder before it is still accepted, and would change what was read. The keys
// must be in one hash slot.
func (g *Guard) Claim(ctx context.Context, h fence.Holding, keys ...string) error {
	return done(g.run(ctx, h, nothing, false, keys))
}

// done is for a write whose answer says nothing else.
func done(_ any, err error) error {
	if errors.Is(err, ErrAnswerLost) {
		return nil
	}
	return err
}

// Run runs a Lua script of the caller as the write that is guarded, and returns
// what it returns: nil for Lua's nil and false. The script sees the keys as KEYS
// and the arguments as ARGV, and may change those keys, each of which is guarded;
// all must be in one hash slot. As always, values go into the arguments, not into
// the text of the script, which Redis keeps. A script that fails does not undo what
// it had done.
//
// A client that got no answer may send it again. It does not run twice, unless
// another write came in between: it fails with [ErrAnswerLost].
func (g *Guard) Run(ctx context.Context, h fence.Holding, script string, keys []string, args ...any) (any, error) {
	return g.run(ctx, h, guarded(script), true, keys, args...)
}
