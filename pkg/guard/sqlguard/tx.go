package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Tx is a transaction that a guard has checked. It has the methods of a
// [*sql.Tx] that generated code and mappers ask for; [Guard.Do] alone commits it.
// After an error by which the database ends a transaction every further call
// fails with that error: on MySQL the next statement would be committed on its
// own, unguarded. It is for one goroutine, as a [*sql.Tx] is.
type Tx struct {
	tx   *sql.Tx
	g    *Guard
	r    request
	end  error     // why it has ended
	open *sql.Rows // the last ones: their error comes while they are read
	look bool      // the last statement may have ended it
	sure bool      // nothing can have ended it unseen
}

// ExecContext is that of a [*sql.Tx].
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := t.before(ctx, query); err != nil {
		return nil, err
	}
	result, err := t.tx.ExecContext(ctx, query, args...)
	return result, t.note(err)
}

// QueryContext is that of a [*sql.Tx].
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := t.before(ctx, query); err != nil {
		return nil, err
	}
	rows, err := t.tx.QueryContext(ctx, query, args...)
	t.open = rows
	return rows, t.note(err)
}

// QueryRowContext is that of a [*sql.Tx].
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := t.before(ctx, query); err != nil {
		return t.tx.QueryRowContext(over{ctx, err}, query, args...)
	}
	row := t.tx.QueryRowContext(ctx, query, args...)
	_ = t.note(row.Err())
	return row
}

// PrepareContext is that of a [*sql.Tx], for queries that read or change rows. What
// is prepared is closed with the transaction.
func (t *Tx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := t.before(ctx, query); err != nil {
		return nil, err
	}
	if verb(strings.ReplaceAll(query, ";", "")) != plain {
		return nil, fmt.Errorf("sqlguard: not to be prepared in Do: %.60q", query)
	}
	statement, err := t.tx.PrepareContext(ctx, query)
	return statement, t.note(err)
}

// Bind has the transaction change a further resource of the same locks.
func (t *Tx) Bind(ctx context.Context, resource string) error {
	more, err := t.g.request(t.r.holding, []string{resource})
	if err == nil {
		err = t.before(ctx, "SELECT")
	}
	if err == nil {
		err = t.g.Dialect.check(ctx, t.tx, t.g, more)
	}
	if err != nil && t.end == nil {
		t.end = err // a refusal cannot be passed over
	}
	return err
}

// before refuses what would end the transaction, or comes after its end. After a
// statement that may have ended it, it looks: what follows could be committed,
// unguarded, by another of that kind.
func (t *Tx) before(ctx context.Context, query string) error {
	if t.look && t.ended() == nil {
		t.look = false
		err := t.g.Dialect.confirm(ctx, t.tx, t.r)
		if err == nil && t.g.Dialect.endsSilently() {
			_, err = t.tx.ExecContext(ctx, "SAVEPOINT "+t.r.key()) // confirm took it
		}
		if errors.Is(err, ErrEnded) {
			t.end = err
		}
		_ = t.note(err) // another error, the statement meets too
	}
	if err := t.ended(); err != nil {
		return fmt.Errorf("sqlguard: the transaction has ended: %w", err)
	}
	switch v := verb(query); v {
	case ending:
		return fmt.Errorf("sqlguard: Do ends the transaction: %.60q", query)
	case inside, other:
		t.look, t.sure = v == other, false
	}
	return nil
}

func (t *Tx) note(err error) error {
	if t.end == nil && repeatable(err) {
		t.end = err
	}
	return err
}

func (t *Tx) ended() error {
	if t.open != nil {
		_ = t.note(t.open.Err())
	}
	return t.end
}

// A kind of statement is what it may do to the transaction.
type kind int

const (
	other  kind = iota // it may commit by itself
	plain              // it reads or changes rows
	inside             // it works with savepoints
	ending             // it is for ending the transaction
)

func verb(query string) kind {
	query = uncommented(query)
	words := strings.FieldsFunc(strings.ToUpper(query), func(r rune) bool {
		return r < '0' || r > '_' || ':' <= r && r <= '@'
	})
	if len(words) == 0 || strings.Contains(strings.TrimRight(query, "; \t\r\n"), ";") {
		return other
	}
	switch words[0] {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "WITH", "VALUES":
		return plain
	case "SAVEPOINT", "RELEASE":
		return inside
	case "ROLLBACK":
		if slices.Contains(words, "TO") {
			return inside
		}
		return ending
	case "COMMIT", "END", "ABORT", "BEGIN", "START":
		return ending
	}
	return other
}

// uncommented takes off the comments that generated code and tracers begin with. A
// comment that MySQL executes is none.
func uncommented(query string) string {
	for {
		query = strings.TrimSpace(query)
		end := ""
		switch {
		case strings.HasPrefix(query, "--"):
			end = "\n"
		case strings.HasPrefix(query, "/*") && !strings.HasPrefix(query, "/*!") && !strings.HasPrefix(query, "/*M!"):
			end = "*/"
		default:
			return query
		}
		_, query, _ = strings.Cut(query, end)
	}
}

// over is a context that has ended with an error, for a [*sql.Row] to have it.
type over struct {
	context.Context
	err error
}

func (o over) Err() error { return o.err }

func (o over) Done() <-chan struct{} { return closed }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
