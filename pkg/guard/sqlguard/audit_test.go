package sqlguard_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// column returns the first column of all rows.
func column(t testing.TB, db *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(sql.RawBytes)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(*values[0].(*sql.RawBytes)))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestAnAuditFindsWritesThatBypassedTheGuard(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.database(t)
		exec(t, db, "CREATE TABLE ledger (entry INT PRIMARY KEY)")
		exec(t, db, k.dialect.Columns("ledger"))
		for i, write := range []string{
			"'shop/a', 5", "'shop/a', 5", "'shop/b', 1", "'shop/a', 7", "'shop/a', 6", "'shop/a', 6",
			"'shop/b', 2", "'shop/a', 7", "'shop/a', 9", "'shop/b', 1", "'shop/a', 10",
		} {
			exec(t, db, fmt.Sprintf("INSERT INTO ledger (entry, fence_lock, fence_token) VALUES (%d, %s)", i+1, write))
		}
		if got, want := column(t, db, sqlguard.Audit("ledger", "entry")), "5 6 10"; got != want {
			t.Errorf("got entries %s, want %s", got, want)
		}
	})
}

func TestRefusalsAreObserved(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.guarded(t)
		var log bytes.Buffer
		guard := k.dialect
		guard.Observer = fence.LogRefusals(slog.New(slog.NewTextHandler(&log, nil)))
		for _, step := range []struct {
			want string
			do   func(ctx context.Context, tx *sql.Tx) error
		}{
			{"", func(ctx context.Context, tx *sql.Tx) error { return guard.Check(ctx, tx, "shop/doc", 6) }},
			{"", func(ctx context.Context, tx *sql.Tx) error { return guard.Bind(ctx, tx, "doc", "shop/doc") }},
			{"", func(ctx context.Context, tx *sql.Tx) error {
				return guard.Update(ctx, tx, document1, "shop/doc", 6, "")
			}},
			{`resource="table fence" lock=shop/doc token=5 seen=6`, func(ctx context.Context, tx *sql.Tx) error { return guard.Check(ctx, tx, "shop/doc", 5) }},
			{`resource="table fence" lock=shop/doc token=5 seen=6`, func(ctx context.Context, _ *sql.Tx) error { return guard.Claim(ctx, db, "shop/doc", 5) }},
			{`resource=doc lock=shop/other bound=shop/doc`, func(ctx context.Context, tx *sql.Tx) error { return guard.Bind(ctx, tx, "doc", "shop/other") }},
			{`resource="doc id=1" lock=shop/doc token=5 seen=6`, func(ctx context.Context, tx *sql.Tx) error {
				return guard.Update(ctx, tx, document1, "shop/doc", 5, "")
			}},
			{`resource="doc id=1" lock=shop/other bound=shop/doc`, func(ctx context.Context, tx *sql.Tx) error {
				return guard.Update(ctx, tx, document1, "shop/other", 7, "")
			}},
			{"", func(ctx context.Context, tx *sql.Tx) error { return guard.Check(ctx, tx, "shop/doc", 0) }},
		} {
			log.Reset()
			err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error { return step.do(t.Context(), tx) })
			got := log.String()
			if strings.Count(got, "\n") > 1 || !strings.Contains(got, step.want) || (step.want == "") != (got == "") {
				t.Errorf("error %v was logged as %q, want %q", err, got, step.want)
			}
		}
	})
}
