// Package dynamoguard has DynamoDB refuse writes with a stale fencing token. A
// [Guard] completes the caller's own UpdateItem, PutItem, DeleteItem or
// TransactWriteItems with a condition and a few attributes, sends it, and says why
// it was refused. It costs no request of its own: the item takes the write if it
// has seen no larger token, and remembers the token with it.
//
//	out, err := guard.UpdateItem(ctx, held.Holding(), &dynamodb.UpdateItemInput{…})
//
// The SDK sends a request again when it gets no answer. An item remembers the id of
// its last write, so what was applied is known, and not applied twice, unless
// another write came in between.
//
// # What it rests on
//
// One Region, or a global table with multi-Region strong consistency: one with
// eventual consistency has no order of writes to guard. What a holder reads to
// decide, it reads with ConsistentRead from the table, after it has claimed, not
// from an index, a cache or a stream. A backup that is restored makes items forget
// tokens: let every holder acquire its lock anew and claim.
//
// It protects what goes through it. BatchWriteItem takes no conditions, and a plain
// DeleteItem, the table's TTL, or a write that replaces the item makes it forget
// the token: delete with the guard, which leaves a tombstone, and keep guarded items
// out of TTL. [Attributes.Bypassed] finds such writes in the table's stream.
// [Guard.TransactFenced] guards plain deletes, by an item that stands for the lock.
//
// # Leaving
//
// Tokens of another source start lower than those that were seen, and would be
// stale for ever: add the largest that [Guard.Seen] tells to each of them, or use
// new names of locks and [Guard.Reset] each item.
package dynamoguard
