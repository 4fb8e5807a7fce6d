package sqlguard

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Dialect guards one kind of database. The tables that it needs are in
// [Dialect.Schema].
type Dialect struct {
	// Observer is told of every refusal. Nil means nobody is.
	Observer fence.Observer

	schema, columns string                   // SQL
	mark            func(n int) string       // the placeholder of argument n
	name            func(mark string) string // a placeholder for a name
	encode          func(name string) string // the argument for a name
	countsMatches   bool                     // whether RowsAffected counts rows that an UPDATE leaves as they are

	// see locks the row of a lock, has it take a larger token and returns what
	// it has then.
	see func(ctx context.Context, tx Tx, lock string, token fence.Token) (fence.Token, error)

	// bind returns the lock of a resource, which is the one given if it had none.
	bind func(ctx context.Context, tx Tx, resource, lock string) (string, error)
}

// A Tx is a transaction, such as a [*sql.Tx]. Commit is not called; it tells a
// transaction from a [*sql.DB], where a check would protect nothing.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
}

// A DB begins transactions: a [*sql.DB] or a [*sql.Conn].
type DB interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// maxName is how many bytes the name of a lock or of a resource may have: a
// namespace, a slash and a lock. A MySQL that is not strict would cut it off.
const maxName = 63 + 1 + 512

// Check makes the rest of the transaction that of the holder with this token: it
// has the database remember the token when the transaction commits, and fails
// with a [fence.StaleError] if it has seen a larger one of the same lock. It
// waits for transactions that have checked the same lock and not ended. After
// any error, roll back.
func (d Dialect) Check(ctx context.Context, tx Tx, lock string, token fence.Token) error {
	return d.Observer.See(ctx, d.check(ctx, tx, lock, token))
}

func (d Dialect) check(ctx context.Context, tx Tx, lock string, token fence.Token) error {
	if err := valid(lock, token); err != nil {
		return err
	}
	seen, err := d.see(ctx, tx, lock, token)
	if err != nil {
		return fmt.Errorf("sqlguard: check %q: %w", lock, err)
	}
	if seen > token {
		return &fence.StaleError{Lock: lock, Token: token, Seen: seen, Resource: "table fence"}
	}
	return nil
}

// Claim is Check in a transaction of its own. A new holder that claims the lock
// before it reads knows that no older one changes what it has read. Repeating a
// Claim does no harm.
func (d Dialect) Claim(ctx context.Context, db DB, lock string, token fence.Token) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("sqlguard: claim %q: %w", lock, err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := d.Check(ctx, tx, lock, token); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlguard: claim %q: %w", lock, err)
	}
	return nil
}

func valid(lock string, token fence.Token) error {
	if len(lock) > maxName {
		return fmt.Errorf("%w: the lock's name is longer than %d bytes", fence.ErrInvalid, maxName)
	}
	return fence.Check(lock, token)
}
