package sqlguard

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// MySQL is MySQL and MariaDB. The tables must be of InnoDB.
//
// With [Guard.Do], the transactions of one holder run side by side from the second
// on that a process makes; with [Guard.Check] they take turns.
//
// A check may set what LAST_INSERT_ID() returns in the session. When the first
// transaction ever to check a lock is rolled back, those that wait for it may
// deadlock and have to be repeated.
var MySQL Dialect = mysql{}

type mysql struct{}

func (mysql) statements() string { return mysqlSchema }
func (mysql) quote() string      { return "`" }
func (mysql) lock() string       { return "`lock`" }
func (mysql) nameType() string   { return "VARBINARY(576)" }
func (mysql) mark(int) string    { return "?" }

// name and encode: names travel as hexadecimal digits, which no character set of a
// connection changes.
func (mysql) name(int) string         { return "UNHEX(?)" }
func (mysql) encode(name string) any  { return hex.EncodeToString([]byte(name)) }
func (mysql) now() string             { return "UNIX_TIMESTAMP()" }
func (mysql) instant(t time.Time) any { return t.Unix() }
func (mysql) endsSilently() bool      { return true }

func (d mysql) check(ctx context.Context, tx Transaction, g *Guard, r request) error {
	for lock, token := range r.holding.All() {
		seen, err := d.see(ctx, tx, g, lock, token)
		if err != nil {
			return err
		}
		if seen > token {
			return &fence.StaleError{Lock: lock, Token: token, Seen: seen, Resource: r.resource()}
		}
	}
	for _, resource := range r.resources {
		if err := d.bind(ctx, tx, g, r, resource); err != nil {
			return err
		}
	}
	// It lasts as long as the transaction and the check.
	_, err := tx.ExecContext(ctx, "SAVEPOINT "+r.key())
	return err
}

// see locks the row of a lock, has it take a larger token and returns what it has
// then. Where a committed transaction of this process has put our token there, the
// row is only shared.
//
// Otherwise it inserts first: two transactions that only look at a row that is
// missing both lock the gap where it belongs, and deadlock. How many rows an
// upsert has affected says nothing, as the DSN of the caller changes the meaning
// of that; but for a row that was there, the answer carries the token in the
// place of an automatic key.
func (d mysql) see(ctx context.Context, tx Transaction, g *Guard, lock string,
	token fence.Token) (seen fence.Token, err error) {
	key, table := d.encode(lock), g.table("fence")
	if g.known.has(lock, token) {
		// A plain SELECT would fix too early what REPEATABLE READ reads.
		err := tx.QueryRowContext(ctx,
			"SELECT token FROM "+table+" WHERE `lock` = UNHEX(?) LOCK IN SHARE MODE", key).Scan(&seen)
		if errors.Is(err, sql.ErrNoRows) || err == nil && seen < token { // reset or pruned
			g.known.forget(lock)
			return 0, errChanged
		}
		return seen, err
	}
	answer, err := tx.ExecContext(ctx, "INSERT INTO "+table+" (`lock`, token, since)"+
		" VALUES (UNHEX(?), ?, UNIX_TIMESTAMP())"+
		" ON DUPLICATE KEY UPDATE since = IF(token < VALUES(token), VALUES(since), since),"+
		" token = LAST_INSERT_ID(GREATEST(token, VALUES(token)))", key, int64(token))
	if err != nil {
		return 0, err
	}
	if id, err := answer.LastInsertId(); err == nil && id >= int64(token) {
		return fence.Token(id), nil
	}
	err = tx.QueryRowContext(ctx, "SELECT token FROM "+table+" WHERE `lock` = UNHEX(?) FOR UPDATE", key).Scan(&seen)
	return seen, err
}

func (d mysql) bind(ctx context.Context, tx Transaction, g *Guard, r request, resource string) error {
	table, key, declared := g.table("binding"), d.encode(resource), strings.Join(r.locks, "\n")
	var bound string
	err := tx.QueryRowContext(ctx, "SELECT locks FROM "+table+" WHERE resource = UNHEX(?)", key).Scan(&bound)
	if errors.Is(err, sql.ErrNoRows) {
		if _, err = tx.ExecContext(ctx, "INSERT INTO "+table+" (resource, locks) VALUES (UNHEX(?), UNHEX(?))"+
			" ON DUPLICATE KEY UPDATE locks = "+table+".locks", key, d.encode(declared)); err != nil {
			return err
		}
		// A plain SELECT could miss a row that has been committed meanwhile.
		err = tx.QueryRowContext(ctx, "SELECT locks FROM "+table+" WHERE resource = UNHEX(?) FOR UPDATE", key).Scan(&bound)
	}
	if err != nil {
		return err
	}
	if err := r.holding.Admit(r.locks, unseen(bound), resource); err != nil || bound == declared {
		return err
	}
	// Whether it was another transaction's to widen, RowsAffected does not say.
	const set = " SET locks = UNHEX(?) WHERE resource = UNHEX(?) AND locks = UNHEX(?)"
	if _, err := tx.ExecContext(ctx, "UPDATE "+table+set, d.encode(declared), key, d.encode(bound)); err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, "SELECT locks FROM "+table+" WHERE resource = UNHEX(?) FOR UPDATE", key).Scan(&bound)
	if err == nil && bound != declared {
		return errChanged
	}
	return err
}

// unseen are the locks of a binding. Their tokens are elsewhere.
func unseen(bound string) map[string]fence.Token {
	seen := make(map[string]fence.Token)
	for lock := range strings.SplitSeq(bound, "\n") {
		seen[lock] = 0
	}
	return seen
}

// confirm releases the savepoint of the check. It is gone if the transaction has
// ended, or was rolled back to an earlier one.
func (mysql) confirm(ctx context.Context, tx Transaction, r request) error {
	_, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT "+r.key())
	if number(err) == 1305 {
		return ErrEnded
	}
	return err
}

// prepare has a statement after the end of the transaction begin another one
// instead of being committed by itself, has the server drop the session if it
// idles, and bounds how long it waits for a row: the driver leaves a statement
// waiting in the server when its caller has given up.
func (mysql) prepare(ctx context.Context, conn *sql.Conn, g *Guard) (func(context.Context) error, error) {
	idle := max(1, int(math.Ceil(g.idle().Seconds())))
	_, err := conn.ExecContext(ctx, fmt.Sprintf("SET @pawl_autocommit = @@autocommit, @pawl_idle = @@wait_timeout,"+
		" @pawl_wait = @@innodb_lock_wait_timeout, SESSION wait_timeout = LEAST(@@wait_timeout, %d),"+
		" SESSION innodb_lock_wait_timeout = LEAST(@@innodb_lock_wait_timeout, %d), SESSION autocommit = 0", idle, wait(ctx)))
	return func(ctx context.Context) error {
		// To set autocommit commits what is open, and database/sql may not have come
		// to roll back what a context has ended.
		if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "SET SESSION autocommit = @pawl_autocommit, SESSION wait_timeout = @pawl_idle,"+
			" SESSION innodb_lock_wait_timeout = @pawl_wait")
		return err
	}, err
}

// longestWait is for a row lock, in seconds. Do then begins again.
const longestWait = 5

// wait is how many whole seconds are worth waiting for a row lock.
func wait(ctx context.Context) int {
	end, ok := ctx.Deadline()
	if !ok {
		return longestWait
	}
	return max(1, min(longestWait, int(math.Ceil(time.Until(end).Seconds()))))
}
