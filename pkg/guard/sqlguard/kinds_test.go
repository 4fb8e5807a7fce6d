package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// A kind of database, through one way to use its driver.
type kind struct {
	name    string
	dialect sqlguard.Dialect
	forTest func(testing.TB) (dsn string)
	change  func(*connection)

	space    string                            // what a database has several of
	cascade  string                            // for a space with tables in it
	enter    func(c *connection, space string) // has connections start in one
	marks    *strings.Replacer                 // from $1 to its own placeholders
	session  string                            // asks for the id of the session
	kill     string                            // ends the session with an id
	hexLocks string                            // shows the locks in table fence
	idle     string                            // bounds how long a transaction may do nothing
	waiting  string                            // shows a name and how many wait for a lock
}

// A connection is what the driver is told, by one of the two.
type connection struct {
	postgres *pgx.ConnConfig
	mysql    *mysql.Config
}

var (
	postgres = kind{
		name:     "PostgreSQL",
		dialect:  sqlguard.Postgres,
		forTest:  localtest.PostgresForTest,
		space:    "SCHEMA",
		cascade:  " CASCADE",
		enter:    func(c *connection, space string) { c.postgres.RuntimeParams["search_path"] = space },
		marks:    strings.NewReplacer(),
		session:  "SELECT pg_backend_pid()",
		kill:     "SELECT pg_terminate_backend($1)",
		hexLocks: "SELECT encode(convert_to(lock, 'UTF8'), 'hex') FROM pawl.fence",
		idle:     "SET LOCAL idle_in_transaction_session_timeout = '1s'",
		waiting:  "SELECT 'waits', count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
	}
	mariaDB = kind{
		name:     "MariaDB",
		dialect:  sqlguard.MySQL,
		forTest:  localtest.MariaDBForTest,
		space:    "DATABASE",
		enter:    func(c *connection, space string) { c.mysql.DBName = space },
		marks:    strings.NewReplacer("$1", "?", "$2", "?", "$3", "?", "$4", "?"),
		session:  "SELECT connection_id()",
		kill:     "KILL ?",
		hexLocks: "SELECT hex(`lock`) FROM fence",
		idle:     "SET SESSION wait_timeout = 1",
		waiting:  "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
	}
)

// each runs a test on every kind of database.
func each(t *testing.T, test func(*testing.T, kind)) {
	for _, k := range []kind{postgres, mariaDB} {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// eachWay runs a test through every way to use a driver that could matter.
func eachWay(t *testing.T, test func(*testing.T, kind)) {
	each(t, test)
	for name, k := range map[string]kind{
		"without prepared statements": postgres.with(func(c *connection) {
			c.postgres.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		}),
		"without prepared statements or strictness": mariaDB.with(func(c *connection) {
			c.mysql.InterpolateParams = true
			c.mysql.Params = map[string]string{"sql_mode": "''"}
		}),
		"counting found rows": mariaDB.with(func(c *connection) { c.mysql.ClientFoundRows = true }),
	} {
		t.Run(k.name+" "+name, func(t *testing.T) { test(t, k) })
	}
}

// with returns k with one more change.
func (k kind) with(change func(*connection)) kind {
	before := k.change
	k.change = func(c *connection) {
		if before != nil {
			before(c)
		}
		change(c)
	}
	return k
}

// wrapping returns k with connections in a wrapper.
func (k kind) wrapping(wrap func(net.Conn) net.Conn) kind {
	var d net.Dialer
	return k.with(func(c *connection) {
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := d.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return wrap(conn), nil
		}
		if c.postgres != nil {
			c.postgres.DialFunc = dial
		} else {
			c.mysql.DialFunc = dial
		}
	})
}

func (k kind) open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	c := new(connection)
	var err error
	if k.name == postgres.name {
		c.postgres, err = pgx.ParseConfig(dsn)
	} else {
		c.mysql, err = mysql.ParseDSN(dsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	if k.change != nil {
		k.change(c)
	}
	var db *sql.DB
	if c.postgres != nil {
		db = stdlib.OpenDB(*c.postgres)
	} else {
		c.mysql.Logger = new(mysql.NopLogger) // it would tell of what we break
		connector, err := mysql.NewConnector(c.mysql)
		if err != nil {
			t.Fatal(err)
		}
		db = sql.OpenDB(connector)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// create makes the tables of a guard, and a table for documents.
func (k kind) create(t testing.TB, db *sql.DB, g *sqlguard.Guard) {
	t.Helper()
	for _, s := range append(g.Statements(), "CREATE TABLE doc (id INT PRIMARY KEY, body TEXT)", g.Columns("doc")) {
		exec(t, db, s)
	}
}

// guard returns that of a database. What MySQL calls a schema is a database, of
// which all tests share one server.
func (k kind) guard(t testing.TB, db *sql.DB) *sqlguard.Guard {
	t.Helper()
	g := &sqlguard.Guard{Dialect: k.dialect}
	if k.name != postgres.name {
		g.Schema = column(t, db, "SELECT DATABASE()")
	}
	return g
}

// database returns a database with the tables, in which document 1 is empty.
func (k kind) database(t testing.TB) (*sql.DB, *sqlguard.Guard) {
	t.Helper()
	db := k.open(t, k.forTest(t))
	g := k.guard(t, db)
	k.create(t, db, g)
	exec(t, db, "INSERT INTO doc (id, body) VALUES (1, '')")
	return db, g
}

// mayBeRepeated reports whether the database itself ended a transaction that
// could go through the next time.
func mayBeRepeated(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &pg):
		return strings.HasPrefix(pg.Code, "40")
	case errors.As(err, &my):
		return my.Number == 1213 || my.Number == 1205 || my.Number == 1020
	}
	return false
}

func exec(t testing.TB, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
