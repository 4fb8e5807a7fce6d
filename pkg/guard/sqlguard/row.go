package sqlguard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Row is one row of a table with the columns of [Guard.Columns]. It carries the
// lock that it is bound to and the largest token of that lock.
type Row struct {
	// Table is as it stands in SQL: from code, never from input.
	Table string

	// Key has the whole primary key: the columns, as they stand in SQL, and their
	// values.
	Key map[string]any
}

// Update changes one row that carries its own token, and has it carry that of the
// holding. It fails with a [fence.StaleError] if the row has seen a larger one,
// with a [fence.OtherLockError] if it is bound to another lock, and with an error
// that matches [sql.ErrNoRows] if there is no such row. The row's first Update
// binds it. A row must never be deleted, or it forgets: mark it as deleted. A row
// that is inserted with fence_lock and fence_token is guarded from the start. What
// several locks guard, or several rows, needs [Guard.Do] instead.
//
// What to set is SQL with the placeholders of the database, which args fill:
// "state = $1, changed = now()". It sees what there is once the row is locked.
// Without any, Update is the claim of a row.
func (g *Guard) Update(ctx context.Context, tx Transaction, h fence.Holding, row Row, set string, args ...any) error {
	r, err := g.request(h, []string{row.String()})
	if err == nil && (len(h.With) > 0 || len(g.Locks) > 1) {
		err = fmt.Errorf("%w: a row carries the token of one lock", fence.ErrInvalid)
	}
	if err == nil {
		err = g.update(ctx, tx, h, row, set, args)
	}
	return g.judged(ctx, "update", r, err)
}

func (g *Guard) update(ctx context.Context, tx Transaction, h fence.Holding, row Row, set string, args []any) error {
	d := g.Dialect
	if err := g.admitRow(ctx, tx, h, row); err != nil {
		return err
	}
	if set != "" {
		set += ", "
	}
	n := len(args)
	lock, token := d.encode(h.Lock), int64(h.Token)
	where, keys := row.where(d, n+2)
	// The row is locked, and takes it. The condition is for a transaction that the
	// database has ended meanwhile.
	statement := fmt.Sprintf("UPDATE %s SET %sfence_lock = %s, fence_token = %s WHERE %s"+
		" AND COALESCE(fence_lock, '') IN ('', %s) AND COALESCE(fence_token, 0) <= %s",
		row.Table, set, d.name(n+1), d.mark(n+2), where, d.name(n+3+len(keys)), d.mark(n+4+len(keys)))
	args = slices.Concat(args[:n:n], []any{lock, token}, keys, []any{lock, token})
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil || d.endsSilently() { // MySQL may count only what changes
		return err
	}
	if changed, err := result.RowsAffected(); err != nil || changed != 1 {
		return errors.Join(err, errors.New("the row does not take it"))
	}
	return nil
}

// admitRow locks the row and returns why it does not take the token, if so. A
// statement that waits for a row and changes it at once would compute from what
// was there before it waited.
func (g *Guard) admitRow(ctx context.Context, tx Transaction, h fence.Holding, row Row) error {
	where, keys := row.where(g.Dialect, 0)
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT COALESCE(fence_lock, ''), COALESCE(fence_token, 0)"+
		" FROM %s WHERE %s FOR UPDATE", row.Table, where), keys...)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	var lock string
	var token int64
	for ; rows.Next(); n++ {
		if err := rows.Scan(&lock, &token); err != nil {
			return err
		}
	}
	switch err := rows.Err(); {
	case err != nil:
		return err
	case n == 0:
		return sql.ErrNoRows
	case n > 1:
		return fmt.Errorf("%w: %d rows match %s", fence.ErrInvalid, n, row)
	}
	seen := map[string]fence.Token{cmp.Or(lock, h.Lock): fence.Token(token)}
	return h.Admit([]string{h.Lock}, seen, row.String())
}

// where returns the condition for the row, with placeholders after the first n,
// and its arguments.
func (r Row) where(d Dialect, n int) (string, []any) {
	var conditions []string
	var args []any
	for _, column := range slices.Sorted(maps.Keys(r.Key)) {
		args = append(args, r.Key[column])
		conditions = append(conditions, column+" = "+d.mark(n+len(args)))
	}
	if conditions == nil {
		return "1 = 0", nil
	}
	return strings.Join(conditions, " AND "), args
}

func (r Row) String() string {
	text := r.Table
	for _, column := range slices.Sorted(maps.Keys(r.Key)) {
		text += fmt.Sprintf(" %s=%v", strings.Trim(column, "\"`"), r.Key[column])
	}
	return text
}
