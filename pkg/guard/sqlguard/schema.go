package sqlguard

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"
)

var (
	//go:embed postgres.sql
	postgresSchema string
	//go:embed mysql.sql
	mysqlSchema string
)

// schema is that of the tables, as it stands in SQL.
func (g *Guard) schema() string {
	q := g.Dialect.quote()
	return q + strings.ReplaceAll(cmp.Or(g.Schema, "pawl"), q, q+q) + q
}

// table is one of the guard's own, as it stands in SQL: never the one that a
// search path or a temporary table would put in its place.
func (g *Guard) table(name string) string { return g.schema() + "." + name }

// Statements returns those that create what the guard needs in the database, for
// whatever applies migrations. They may be applied again. Who writes needs to use
// the schema, to select, insert and update in its tables, and in PostgreSQL to
// execute its function.
func (g *Guard) Statements() []string {
	text := strings.NewReplacer("{schema}", g.schema(), "{seed}", "1885435756").Replace(g.Dialect.statements())
	return strings.Split(strings.TrimSpace(text), "\n\n")
}

// Columns returns the statement that adds to a table what Update and Audit need
// in each row. Rows that are there already take any lock and any token at first.
func (g *Guard) Columns(table string) string {
	// A plain comparison with NULL is never true, and a token needs 64 bits.
	return fmt.Sprintf(`ALTER TABLE %s
	ADD COLUMN fence_lock  %s NOT NULL DEFAULT '',
	ADD COLUMN fence_token BIGINT NOT NULL DEFAULT 0`, table, g.Dialect.nameType())
}

// Audit returns a query for writers that bypass the guard. It takes a table that
// keeps every write in a row of its own, with the columns of [Guard.Columns] filled
// in by the writers, and the column that puts them in the order in which they were
// made. Its result are the rows that no guarded writer has written, with the reason
// in fence_fault: a row without a token after the first with one, a token or a lock
// that the guard has never seen (or that was pruned), a token older than that of an
// earlier row of the same lock. A token that nobody was granted does not make the
// rows after it suspect.
//
// It cannot see a forged row that carries the newest token, nor a late one behind
// a claim that was followed by no write. A table without history tells nothing.
func (g *Guard) Audit(table, order string) string {
	return fmt.Sprintf(`SELECT history.*, CASE
	WHEN fence_bare = 1 THEN 'no token'
	WHEN fence_newest IS NULL THEN 'unknown lock'
	WHEN fence_token > fence_newest THEN 'unknown token'
	ELSE 'older than an earlier row' END AS fence_fault
FROM (
	SELECT h.*, f.token AS fence_newest,
		CASE WHEN COALESCE(h.fence_lock, '') = '' OR COALESCE(h.fence_token, 0) = 0 THEN 1 ELSE 0 END AS fence_bare,
		MAX(CASE WHEN COALESCE(h.fence_lock, '') <> '' THEN 1 ELSE 0 END) OVER (ORDER BY h.%[2]s) AS fence_begun,
		MAX(CASE WHEN h.fence_token <= f.token THEN h.fence_token END)
			OVER (PARTITION BY h.fence_lock ORDER BY h.%[2]s) AS fence_seen
	FROM %[1]s AS h LEFT JOIN %[3]s AS f ON f.%[4]s = h.fence_lock
) AS history
WHERE fence_bare = 1 AND fence_begun = 1
	OR fence_bare = 0 AND (fence_newest IS NULL OR fence_token > fence_newest OR fence_token < fence_seen)
ORDER BY %[2]s`, table, order, g.table("fence"), g.Dialect.lock())
}
