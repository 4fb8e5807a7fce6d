package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Guard guards what is in one database. It is safe for concurrent use, and must
// not be changed after the first.
type Guard struct {
	// Dialect is [Postgres] or [MySQL]. Required.
	Dialect Dialect

	// Schema is where the guard's own tables are: a schema of PostgreSQL, a
	// database of MySQL. Empty means "pawl". It is part of every statement, so a
	// session with another search path or default database asks the same tables.
	Schema string

	// Locks are the full names of the locks that share every resource of this
	// guard, whether a caller holds them or not. None means those that the caller
	// holds. See [fence.Holding.Admit] for how one is added.
	Locks []string

	// Idle is how long a transaction may do nothing before the database ends it.
	// A holder that was stopped inside of its own cannot keep the next one waiting
	// for longer. Zero means 30 s; MySQL counts in whole seconds.
	Idle time.Duration

	// Isolation is that of the transactions that Do begins. The zero value means
	// that of the database.
	Isolation sql.IsolationLevel

	// Observer is told of every refusal. Nil means nobody is.
	Observer fence.Observer

	known memory
}

// A Dialect is the SQL of one kind of database.
type Dialect interface {
	// check has the database see every token of the request and bind its
	// resources, or returns a refusal.
	check(ctx context.Context, tx Transaction, g *Guard, r request) error

	// confirm returns errEnded unless tx has made the check of the request.
	confirm(ctx context.Context, tx Transaction, r request) error

	// prepare sets a session up for a transaction of Do, and returns what undoes
	// that.
	prepare(ctx context.Context, conn *sql.Conn, g *Guard) (undo func(context.Context) error, err error)

	statements() string
	quote() string
	nameType() string
	lock() string            // the column
	mark(n int) string       // the placeholder of argument n
	name(n int) string       // the same for a name
	encode(name string) any  // the argument for a name
	now() string             // what table fence has in since
	instant(t time.Time) any // the argument that compares with it
	endsSilently() bool      // whether a failed statement may end the transaction, and the next begin another
}

// A Transaction is a [*sql.Tx], or what behaves as one. Commit is not called; it
// tells a transaction from a [*sql.DB], where a check would protect nothing.
type Transaction interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
}

// A DB has connections, such as a [*sql.DB].
type DB interface {
	Conn(ctx context.Context) (*sql.Conn, error)
}

// A request is what a check asks for.
type request struct {
	holding   fence.Holding
	locks     []string // declared
	resources []string
}

// request refuses what needs no database to be refused.
func (g *Guard) request(h fence.Holding, resources []string) (request, error) {
	if g.Dialect == nil {
		return request{}, errors.New("sqlguard: Guard.Dialect is missing")
	}
	if len(resources) == 0 {
		return request{}, fmt.Errorf("%w: no resource is named", fence.ErrInvalid)
	}
	locks, err := h.Declare(g.Locks, resources[0])
	for _, r := range resources {
		if err == nil {
			err = fence.CheckLock(r)
		}
	}
	return request{h, locks, resources}, err
}

// resource is what an error of the whole request names.
func (r request) resource() string { return r.resources[0] }
