package sqlguard_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

func TestAGuardWithoutADialectSaysSo(t *testing.T) {
	db := postgres.open(t, postgres.forTest(t))
	g, ctx, h := new(sqlguard.Guard), t.Context(), holding(5)
	row := sqlguard.Row{Table: "doc", Key: map[string]any{"id": 1}}
	_, seen := g.Seen(ctx, db, "doc/1")
	_, prune := g.Prune(ctx, db, time.Now())
	_, _, statement := g.Statement(h, "doc/1")
	errs := map[string]error{
		"Do":        g.Do(ctx, db, h, "doc/1", func(*sqlguard.Tx) error { return nil }),
		"Claim":     g.Claim(ctx, db, h, "doc/1"),
		"Reset":     g.Reset(ctx, db, h, "doc/1"),
		"Seen":      seen,
		"Prune":     prune,
		"Statement": statement,
	}
	_ = postgres.do(ctx, db, nil, func(tx *sql.Tx) error {
		errs["Check"] = g.Check(ctx, tx, h, "doc/1")
		errs["Confirm"] = g.Confirm(ctx, tx, h, "doc/1")
		errs["Update"] = g.Update(ctx, tx, h, row, "")
		return nil
	})
	for name, text := range map[string]string{
		"Statements": g.Statements()[0], "Columns": g.Columns("doc"), "Audit": g.Audit("doc", "id"),
	} {
		_, errs[name] = db.Exec(text)
		if !strings.Contains(text, "Guard.Dialect is missing") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for name, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "Guard.Dialect is missing") && !strings.Contains(err.Error(), "sqlguard") {
			t.Errorf("%s: got error %v, want that Guard.Dialect is missing", name, err)
		}
	}
}
