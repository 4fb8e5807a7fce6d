// Package lease is what callers of the lock service speak: a [Service] grants
// leases of locks, and its errors say what happened. It knows no transport and no
// database.
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
// Those who call a service need this package only. How leases are kept is in
// package protocol, and PROTOCOL.md, beside this file, says why.
package lease
