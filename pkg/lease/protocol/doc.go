// Package protocol is the lease protocol as pure functions, for those who write
// a store: a [Record] is what is kept of a lock, its methods are the changes that
// are legal, and time is an argument.
//
//	          Acquire (larger token)
//	  ┌─────────────────────────────────┐
//	  │                                 ▼
//	free ◀──── Release, Break ──────── held ──┐ Renew,
//	  ▲                                 │ ▲───┘ Acquire repeated
//	  └── TTL + lock delay pass ────────┘       with its request id
//
// What a store does must be what they say. PROTOCOL.md, in the directory above,
// says why: each attribute, each clause of a condition and the attack that it
// answers, the times that must stand in a relation, and what was verified.
//
// It cannot make a change atomic: that is what the store is for.
package protocol
