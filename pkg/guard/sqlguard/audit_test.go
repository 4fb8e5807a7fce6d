package sqlguard_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
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
		db, g := k.database(t)
		exec(t, db, "CREATE TABLE ledger (entry INT PRIMARY KEY, why VARCHAR(60))")
		exec(t, db, "INSERT INTO ledger VALUES (1, '')")
		exec(t, db, g.Columns("ledger"))
		for lock, token := range map[string]fence.Token{"shop/a": 10, "shop/b": 2} {
			if err := g.Claim(t.Context(), db, fence.Holding{Lock: lock, Token: token}, lock); err != nil {
				t.Fatal(err)
			}
		}
		for i, w := range []struct{ write, why string }{
			{"'shop/a', 5", ""}, {"'shop/a', 5", ""}, {"'shop/b', 1", ""}, {"'shop/a', 7", ""},
			{"'shop/a', 6", "older than an earlier row"}, {"'shop/b', 2", ""}, {"'', 0", "no token"},
			{"'shop/a', 999", "unknown token"}, {"'shop/a', 7", ""}, {"'shop/a', 9", ""},
			{"'shop/b', 1", "older than an earlier row"}, {"'shop/typo', 9", "unknown lock"}, {"'shop/a', 10", ""},
		} {
			exec(t, db, fmt.Sprintf("INSERT INTO ledger (entry, why, fence_lock, fence_token) VALUES (%d, '%s', %s)", i+2, w.why, w.write))
		}
		found := column(t, db, "SELECT CONCAT(entry, ' ', why) FROM ledger WHERE why <> '' ORDER BY entry")
		if got := column(t, db, "SELECT CONCAT(entry, ' ', fence_fault) FROM ("+g.Audit("ledger", "entry")+") AS a ORDER BY entry"); got != found || got == "" {
			t.Errorf("got %s, want %s", got, found)
		}
	})
}

func TestARefusalIsObservedOnce(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		if err := g.Claim(t.Context(), db, holding(6), "doc/1"); err != nil {
			t.Fatal(err)
		}
		if err := k.update(t, db, g, 6, ""); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		g.Observer = fence.LogRefusals(slog.New(slog.NewTextHandler(&log, nil)))
		other := fence.Holding{Lock: "shop/other", Token: 7}
		in := func(do func(tx *sql.Tx) error) error { return k.do(t.Context(), db, nil, do) }
		for want, do := range map[string]func() error{
			"":   func() error { return g.Claim(t.Context(), db, holding(6), "doc/1") },
			" ":  func() error { return g.Claim(t.Context(), db, holding(0), "doc/1") },
			"  ": func() error { return g.Claim(t.Context(), db, holding(6), "") },
			"resource=doc/1 lock=shop/doc token=5 seen=6 not_applied=true": func() error {
				return g.Claim(t.Context(), db, holding(5), "doc/1")
			},
			"resource=doc/1 lock=shop/doc token=4 seen=6 not_applied=true": func() error {
				return in(func(tx *sql.Tx) error { return g.Check(t.Context(), tx, holding(4), "doc/1") })
			},
			"resource=doc/1 lock=shop/other bound=shop/doc not_applied=true": func() error {
				return g.Claim(t.Context(), db, other, "doc/1")
			},
			`resource="doc id=1" lock=shop/doc token=5 seen=6 not_applied=true`: func() error { return k.update(t, db, g, 5, "") },
			`resource="doc id=1" lock=shop/other bound=shop/doc not_applied=true`: func() error {
				return in(func(tx *sql.Tx) error { return g.Update(t.Context(), tx, other, document1, "") })
			},
		} {
			log.Reset()
			err := do()
			want = strings.TrimSpace(want)
			got := log.String()
			if strings.Count(got, "\n") > 1 || !strings.Contains(got, want) || (want == "") != (got == "") {
				t.Errorf("error %v was logged as %q, want %q", err, got, want)
			}
		}
	})
}
