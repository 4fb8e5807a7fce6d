package sqlguard

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// MySQL guards MySQL and MariaDB. The tables must be of InnoDB.
//
// A Check may set what LAST_INSERT_ID() returns in the session. When the first
// transaction ever to check a lock is rolled back, those that wait for it may
// deadlock and have to be repeated.
var MySQL = Dialect{
	schema:  mysqlSchema,
	columns: mysqlColumns,
	mark:    func(int) string { return "?" },
	// Names travel as hexadecimal digits, which no character set of a
	// connection changes.
	name:   func(mark string) string { return "UNHEX(" + mark + ")" },
	encode: mysqlEncode,
	see:    mysqlSee,
	bind:   mysqlBind,
}

func mysqlEncode(name string) string { return hex.EncodeToString([]byte(name)) }

// mysqlSee inserts first: two transactions that only look at a row that is
// missing both lock the gap where it belongs, and deadlock. How many rows an
// upsert has affected says nothing, as the DSN of the caller changes the meaning
// of that; but for a row that was there, the answer carries the token in the
// place of an automatic key.
func mysqlSee(ctx context.Context, tx Tx, lock string, token fence.Token) (seen fence.Token, err error) {
	key := mysqlEncode(lock)
	answer, err := tx.ExecContext(ctx, "INSERT INTO fence (`lock`, token) VALUES (UNHEX(?), ?)"+
		" ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST(token, VALUES(token)))", key, int64(token))
	if err != nil {
		return 0, err
	}
	if id, err := answer.LastInsertId(); err == nil && id >= int64(token) {
		return fence.Token(id), nil
	}
	err = tx.QueryRowContext(ctx, "SELECT token FROM fence WHERE `lock` = UNHEX(?) FOR UPDATE", key).Scan(&seen)
	return seen, err
}

func mysqlBind(ctx context.Context, tx Tx, resource, lock string) (bound string, err error) {
	key := mysqlEncode(resource)
	err = tx.QueryRowContext(ctx, "SELECT `lock` FROM fence_binding WHERE resource = UNHEX(?)", key).Scan(&bound)
	if !errors.Is(err, sql.ErrNoRows) {
		return bound, err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO fence_binding (resource, `lock`) VALUES (UNHEX(?), UNHEX(?))"+
		" ON DUPLICATE KEY UPDATE `lock` = fence_binding.`lock`", key, mysqlEncode(lock)); err != nil {
		return "", err
	}
	// A plain SELECT could miss a row that has been committed meanwhile.
	err = tx.QueryRowContext(ctx, "SELECT `lock` FROM fence_binding WHERE resource = UNHEX(?) FOR UPDATE", key).Scan(&bound)
	return bound, err
}
