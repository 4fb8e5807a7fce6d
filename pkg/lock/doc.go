// Package lock holds locks while a program works. It takes a lease, renews it in
// the background, stops the work when the lease is lost, and has the fencing
// token at hand wherever the program writes.
//
//	locks := &lock.Client{Service: &httplease.Client{URL: url}}
//	err := locks.Do(ctx, "payments/orders/42", func(ctx context.Context, token fence.Token) error {
//		return ship(ctx, token) // stops when ctx ends; every write carries the token
//	})
//
// The same code goes over HTTPS or straight to DynamoDB, by what is put into
// [Client.Service].
//
// # What is promised
//
// At most one [Held] of a lock is trusted at a time, as long as the clocks of
// all hosts advance at about the same rate. It is trusted until
//
//	sent + min(remaining, TTL) - Margin
//
// where sent is the time before the last confirmed request was sent, and remaining
// is what its answer said. The service counts the same lease from when the request
// arrived, and grants the lock to the next when that, its skew and the lock delay
// are over:
//
//	arrived + remaining + Skew + LockDelay
//
// Sent is before arrived, so trust ends first, by Margin + Skew at least, and with
// it the context of [Held.Context].
//
//	           Acquire                 trust runs out, or renewing is refused
//	(nothing) ─────────▶ trusted ──────────────────────────────────────▶ lost
//	                      │  ▲ │                                           │
//	                      │  └─┘ renewed                                   │
//	                      └───────────▶ released ◀───────── Release ───────┘
//
// # What is not
//
// Nothing can stop a program that is paused between looking at the context and
// writing: not a shorter TTL, and not a longer one. Only storage that checks the
// token can. Send it along with every write; see package fence and the guards.
//
// A process that is killed while it waits for a lock can still be granted it
// once, within the ten seconds for which it had asked the service to wait; the
// lock is free again one TTL later, plus skew and lock delay. For a wait that is
// cancelled the service is told, in the background, that its request is to get
// nothing: a program that ends calls [Client.Settle] before. [Election.Run] does.
//
// A lock is renewed for as long as it is not released: work that hangs keeps it.
// And waiters are not served in turn where the service does not see to it.
package lock
