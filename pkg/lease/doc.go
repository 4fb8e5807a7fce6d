// Package lease is the domain of the lock service: what a lease is, who holds
// it, and which changes of state are legal. It knows no transport and no
// database.
//
//	          Acquire (larger token)
//	  ┌─────────────────────────────────┐
//	  │                                 ▼
//	free ◀──── Release, Break ──────── held ──┐ Renew,
//	  ▲                                 │ ▲───┘ Acquire repeated
//	  └── TTL + lock delay pass ────────┘       with its request id
//
// A [Service] promises that a lock is granted to one holder at a time in the
// order of its store, and that every grant has a larger [fence.Token] than all
// grants of that lock before it: through release, expiry, retirement and
// restore of the store.
//
// It cannot promise that a holder that was paused notices in time that its
// lease ran out. Only a token checked by the storage that the holder writes to
// can; see package fence.
//
// [Record] is the whole protocol as pure functions. What a store does must be
// what they say. PROTOCOL.md, beside this file, says why: each attribute, each
// clause of a condition and the attack that it answers, the times that must
// stand in a relation, and what was verified.
package lease
