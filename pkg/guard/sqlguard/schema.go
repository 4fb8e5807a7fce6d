package sqlguard

import (
	_ "embed"
	"fmt"
	"strings"
)

var (
	//go:embed postgres.sql
	postgresSchema string
	//go:embed postgres_columns.sql
	postgresColumns string
	//go:embed mysql.sql
	mysqlSchema string
	//go:embed mysql_columns.sql
	mysqlColumns string
)

// Schema returns the statements that create the tables of Check, Claim and Bind
// unless they exist.
func (d Dialect) Schema() []string { return strings.SplitAfter(strings.TrimSpace(d.schema), ";\n") }

// Columns returns the statement that adds to a table what Update needs in each
// row. Rows that are there already take any lock and any token at first.
func (d Dialect) Columns(table string) string {
	return strings.ReplaceAll(d.columns, "{table}", table)
}

// Audit returns a query for writers that bypass the guard. It takes a table that
// keeps every write in a row of its own, with the columns of [Dialect.Columns],
// and the column that puts them in the order in which they were made. Its result
// are the rows whose token is older than that of an earlier row of the same lock,
// which fence_seen has.
//
// A table without history cannot tell. Guarded writers take turns, so a column
// that counts up is in order for them.
func Audit(table, order string) string {
	return fmt.Sprintf(`SELECT * FROM (
	SELECT h.*, MAX(h.fence_token) OVER (PARTITION BY h.fence_lock ORDER BY h.%[2]s) AS fence_seen
	FROM %[1]s AS h
) AS history WHERE fence_token < fence_seen ORDER BY %[2]s`, table, order)
}
