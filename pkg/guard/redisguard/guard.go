// Package redisguard has Redis refuse writes with a stale fencing token. A
// [Guard] runs the caller's write inside of one Lua script, which checks the
// token first and remembers it, in one round trip. Redis, Valkey and other
// servers with EVALSHA will do, through any client.
//
// The promise is weaker than that of a database. Redis answers before a write is
// on disk or on a replica: a crash or a failover may lose the latest tokens
// together with the writes that came with them, and then a holder that was
// replaced is accepted until the newer one writes again. Waiting for replicas
// after a claim narrows that and does not close it. Where it must not happen,
// keep the data in a store with a stronger promise.
//
// Tokens are kept in hashes that never expire. An eviction policy that may drop
// keys without an expiry (allkeys-lru and its like) makes the guard forget, and
// so does whoever deletes or renames them, or writes to the data without the
// guard.
package redisguard

import (
	"context"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Do sends one command to Redis and returns the answer. With go-redis:
//
//	func(ctx context.Context, args ...any) (any, error) { return client.Do(ctx, args...).Result() }
//
// A client that sends a command again when it got no answer may execute it
// twice, as it may any write. If the second time is refused, the first may have
// been accepted before the larger token was seen.
type Do func(ctx context.Context, args ...any) (any, error)

// A Guard is the right of one lease to change keys. It is a value: make one per
// lease. Tokens may come from Pawl or from any other counter that only grows.
//
// Its methods fail with [fence.ErrStale] or [fence.ErrOtherLock] if the guard
// refuses, with [fence.ErrInvalid] if it is not valid, and, before anything is
// sent, for a key that cannot be guarded. An error of Do means that the write may
// have been made; the same holder may repeat it.
type Guard struct {
	// Do reaches Redis. Required.
	Do Do

	// Lock is the full name of the lock, "namespace/lock". Required.
	Lock string

	// Token is the token of the grant of Lock. Required.
	Token fence.Token

	// With has the tokens of further locks that the writer holds, by their full
	// names. Each is compared with its own.
	With map[string]fence.Token

	// Locks are the locks whose tokens are taken, whether this writer holds them
	// or not. Empty means Lock and those of With. The first write binds the fence
	// to them for good; writers that declare others are refused.
	Locks []string

	// Fence is the key of the hash that remembers the tokens. It must be in the
	// hash slot of the data. Empty means one for each data key, see [FenceKey];
	// naming one lets many keys share it.
	Fence string

	// OnRefusal is told of every refusal.
	OnRefusal fence.Observer
}

var (
	set     = guarded(`return redis.call('SET', KEYS[1], ARGV[1])`)
	del     = guarded(`return redis.call('DEL', KEYS[1])`)
	nothing = guarded(``)
)

// Set sets key to value, which has no expiry.
func (g Guard) Set(ctx context.Context, key string, value any) error {
	_, err := g.run(ctx, set, []string{key}, value)
	return err
}

// Delete deletes key. The token stays known.
func (g Guard) Delete(ctx context.Context, key string) error {
	_, err := g.run(ctx, del, []string{key})
	return err
}

// Claim has the guard of key see the tokens and changes nothing else. A new
// holder that is to read, decide, and write, claims first: until then a write of
// the holder before it is still accepted, and would change what was read.
func (g Guard) Claim(ctx context.Context, key string) error {
	_, err := g.run(ctx, nothing, []string{key})
	return err
}
