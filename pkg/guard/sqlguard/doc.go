// Package sqlguard guards what is in PostgreSQL, MySQL or MariaDB with fencing
// tokens, inside the caller's own transaction.
//
// [Dialect.Check] is the first statement of the transaction. It keeps the
// largest token of each lock in a row that is never deleted, and so covers
// whatever the transaction does afterwards: inserts, deletes, many rows, many
// tables. That row stays locked until the transaction ends, so that holders take
// turns: one that is stale has either committed before the newer holder read
// anything, or changes nothing. [Dialect.Claim] is for a new holder that reads
// outside of a transaction. [Dialect.Bind] has a resource remember its lock.
// [Dialect.Update] is for a single row that carries its token itself, and needs
// no other table.
//
// The guard can refuse only those who ask it. A writer that does not ask is not
// stopped; [Audit] finds it, where tokens are kept with the data. A trigger would
// not help: one that compares the new row with the old lets every update pass
// that leaves the token alone. And whoever checks a lock waits for every open
// transaction that has checked it, of the same holder too: keep them short.
//
// # Errors
//
// An error that matches [fence.ErrStale], [fence.ErrOtherLock] or
// [fence.ErrInvalid] is a refusal. Any other is the database's own, wrapped. None
// of them has changed anything if the caller then rolls back. After a deadlock
// (SQLSTATE 40P01, MySQL 1213), a lock timeout (1205) or a serialization failure
// (40001; 1020 on MariaDB) another transaction may succeed, or meet the refusal
// that this one has not come to. After an error of Commit that is none of these,
// the outcome is unknown.
//
// # Transactions
//
// READ COMMITTED, REPEATABLE READ and SERIALIZABLE all do. Check comes first
// because an older holder may still change what is read before it, and at
// REPEATABLE READ MySQL goes on reading what was there. A rollback to a savepoint
// from before Check undoes it. Check several locks in the order of their names,
// or transactions deadlock.
//
// It works with any driver of database/sql. Those who use pgx directly can have
// it share their pool through its package stdlib.
package sqlguard
