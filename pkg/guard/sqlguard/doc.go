// Package sqlguard guards what is in PostgreSQL, MySQL or MariaDB with fencing
// tokens, inside of the transaction that changes it.
//
//	err := guard.Do(ctx, db, held.Holding(), "accounts/7", func(tx *sqlguard.Tx) error {
//		_, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = balance - 10 WHERE id = 7`)
//		return err
//	})
//
// [Guard.Do] begins a transaction, checks, does the work, and commits only if the
// transaction is still the one that has checked. The check keeps the largest token
// of each lock in a row of a table of its own, and so covers whatever the
// transaction does: inserts, deletes, many rows, many tables. It binds what is
// changed, a name that the caller gives it, to the lock. Transactions of one holder
// run side by side; those of two take turns, so that one that is stale has either
// committed before the newer holder read anything, or changes nothing.
// [Guard.Claim] is for a new holder that reads outside of a transaction.
//
// [Guard.Check] is the same in a transaction of the caller, [Guard.Statement] for
// pgx without database/sql. [Guard.Update] is for a single row that carries its
// token itself, and needs no other table.
//
// The guard can refuse only those who ask it. A writer that does not ask is not
// stopped; [Guard.Audit] finds it, where tokens are kept with the data. A trigger
// would not help: one that compares the new row with the old lets every update pass
// that leaves the token alone.
//
// # What it rests on
//
// Durable commits: with synchronous_commit=off, or innodb_flush_log_at_trx_commit
// other than 1, a crash of the server forgets the latest tokens, and a holder that
// was replaced is accepted until the newer one comes again. A failover to a standby
// that lags behind, and a backup that is restored, forget them too: let every
// holder acquire its lock anew, so that its token is larger, and claim, before
// anybody writes.
//
// Reads of the primary: what a holder reads to decide, it reads where it writes,
// after it has claimed. A replica may show what was there before.
//
// # Pauses
//
// A holder that is stopped inside of its transaction keeps the next one waiting.
// The database ends a transaction that idles for [Guard.Idle], which rolls it back,
// and nothing is lost but the work of the one that was stopped. PostgreSQL has
// idle_in_transaction_session_timeout for that, set by the check itself; MySQL has
// wait_timeout of a session, set and taken back by Do. For transactions of the
// caller on MySQL, set it in the DSN.
//
// # Errors
//
// An error that matches [fence.ErrStale], [fence.ErrOtherLock] or
// [fence.ErrInvalid] is a refusal: nothing was changed. Any other is the database's
// own, wrapped. Do repeats what the database ends for another's sake: a deadlock
// (SQLSTATE 40P01, MySQL 1213), a serialization failure (40001; 1020 on MariaDB),
// a lock timeout of MySQL (1205). Who uses Check does so himself, and repeats the
// whole, never a statement: after 1213 MySQL goes on without a transaction.
// Timeouts of PostgreSQL that the caller has set (55P03, 57014) are not repeated.
//
// # Transactions
//
// READ COMMITTED, REPEATABLE READ and SERIALIZABLE all do. Behind pgbouncer in
// transaction mode set default_query_exec_mode=exec, or another without prepared
// statements. Check several locks in one holding: they are locked in the order of
// their names.
//
// # Leaving
//
// Tokens of another source start lower than those that were seen, and would be
// stale for ever. Stop all holders, add SELECT MAX(token) FROM pawl.fence to every
// token of the new source, or use new names of locks and [Guard.Reset] each
// resource.
package sqlguard
