// Package redisguard has Redis refuse writes with a stale fencing token. A
// [Guard] runs the caller's write inside of one Lua script, which checks the
// tokens first and remembers them, in one round trip. Redis, Valkey and other
// servers with EVALSHA will do, through any client.
//
//	err := guard.Set(ctx, held.Holding(), "orders:42", "shipped")
//
// # What it rests on
//
// The promise is weaker than that of a database. Redis answers before a write is
// on disk or on a replica: a crash or a failover may lose the latest tokens
// together with the writes that came with them, and then a holder that was
// replaced is accepted until the newer one writes again. Waiting for replicas
// after a claim narrows that and does not close it. A backup that is restored
// forgets too. Where it must not happen, keep the data in a store with a stronger
// promise. What a holder reads to decide, it reads from the primary, after it has
// claimed.
//
// Tokens are kept in hashes that never expire, of about 200 bytes each:
// [Guard.Prune] forgets those of deleted keys. An eviction policy that may drop
// keys without an expiry (allkeys-lru and its like) makes the guard forget, and so
// does whoever deletes or renames them, or writes to the data without the guard.
// Where memory is full and nothing may be evicted, Redis refuses what a newer
// holder is to be remembered by, its deletes too, while the holder that is known
// may still delete. That is safe, and lasts until there is memory.
//
// # Leaving
//
// Tokens of another source start lower than those that were seen, and would be
// stale for ever: add the largest that [Guard.Seen] tells to each of them, or use
// new names of locks and [Guard.Reset] each key.
package redisguard
