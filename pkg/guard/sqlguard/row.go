package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Row is one row of a table with the columns of [Dialect.Columns]. It carries
// the lock that it is bound to and the largest token of that lock.
type Row struct {
	Table string // as it stands in SQL: from code, never from input
	Key   string // the column of the primary key, as it stands in SQL
	ID    any    // the value in it
}

// Update changes one row that carries its own token, and has it carry this one.
// It fails with a [fence.StaleError] if that has seen a larger one, with a
// [fence.OtherLockError] if it is bound to another lock, and with an error that
// matches [sql.ErrNoRows] if there is no such row. The row's first Update binds
// it. A row must never be deleted, or it forgets: mark it as deleted. What
// several locks guard needs Check instead.
//
// What to set is SQL with the placeholders of the database, which args fill:
// "state = $1, changed = now()". Without any, Update is the claim of a row.
func (d Dialect) Update(ctx context.Context, tx Tx, row Row, lock string, token fence.Token, set string, args ...any) error {
	if err := valid(lock, token); err != nil {
		return err
	}
	err := d.update(ctx, tx, row, holder{lock, token}, set, args)
	if err != nil && !errors.Is(err, fence.ErrStale) && !errors.Is(err, fence.ErrOtherLock) {
		return fmt.Errorf("sqlguard: update %s: %w", row, err)
	}
	return d.Observer.See(ctx, err)
}

type holder struct {
	lock  string
	token fence.Token
}

func (d Dialect) update(ctx context.Context, tx Tx, row Row, h holder, set string, args []any) error {
	if set != "" {
		set += ", "
	}
	n := len(args)
	statement := fmt.Sprintf("UPDATE %s SET %sfence_lock = %s, fence_token = %s"+
		" WHERE %s = %s AND COALESCE(fence_lock, '') IN ('', %s) AND COALESCE(fence_token, 0) <= %s",
		row.Table, set, d.name(d.mark(n+1)), d.mark(n+2), row.Key, d.mark(n+3), d.name(d.mark(n+4)), d.mark(n+5))
	lock, token := d.encode(h.lock), int64(h.token)
	args = append(args[:n:n], lock, token, row.ID, lock, token)

	changed, err := rows(tx.ExecContext(ctx, statement, args...))
	if err != nil || changed {
		return err
	}
	// No row was changed. If the row, locked now, does not refuse us, then it
	// has appeared since, or MySQL does not count what stays as it is.
	if err := d.refusal(ctx, tx, row, h); err != nil {
		return err
	}
	changed, err = rows(tx.ExecContext(ctx, statement, args...))
	if err == nil && !changed && d.countsMatches {
		err = errors.New("the row does not take it")
	}
	return err
}

func rows(r sql.Result, err error) (changed bool, _ error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// refusal locks the row and returns why it does not take the token, if so.
func (d Dialect) refusal(ctx context.Context, tx Tx, row Row, h holder) error {
	query := fmt.Sprintf("SELECT COALESCE(fence_lock, ''), COALESCE(fence_token, 0) FROM %s WHERE %s = %s FOR UPDATE",
		row.Table, row.Key, d.mark(1))
	var carried holder
	if err := tx.QueryRowContext(ctx, query, row.ID).Scan(&carried.lock, &carried.token); err != nil {
		return err
	}
	switch {
	case carried.lock != "" && carried.lock != h.lock:
		return &fence.OtherLockError{Lock: h.lock, Bound: carried.lock, Resource: row.String()}
	case carried.token > h.token:
		return &fence.StaleError{Lock: h.lock, Token: h.token, Seen: carried.token, Resource: row.String()}
	}
	return nil
}

func (r Row) String() string {
	return fmt.Sprintf("%s %s=%v", r.Table, strings.Trim(r.Key, "\"`"), r.ID)
}
