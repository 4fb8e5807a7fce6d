package sqlguard_test

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// byHand returns the statements of README, by how they begin, for a database.
func (k kind) byHand(t *testing.T) map[string]string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "For a row that carries its own token")
	_, text, _ = strings.Cut(text, "```sql")
	text, _, _ = strings.Cut(text, "```")
	statements := make(map[string]string)
	for s := range strings.SplitSeq(text, ";\n") {
		for strings.HasPrefix(strings.TrimSpace(s), "--") {
			_, s, _ = strings.Cut(strings.TrimSpace(s), "\n")
		}
		verb, _, _ := strings.Cut(strings.TrimSpace(s), " ")
		if verb != "ALTER" || strings.Contains(s, k.name) {
			statements[verb] = s
		}
	}
	return statements
}

// The SQL of README, for services in other languages, beside a service that uses
// the guard. It is the same for all databases, and reads the row where no row was
// changed: MySQL counts only what changes.
func TestTheSQLByHandSharesTheRowsOfTheGuard(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		readme := k.byHand(t)
		exec(t, db, "CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20))")
		exec(t, db, "INSERT INTO orders VALUES (42, 'paid')")
		exec(t, db, readme["ALTER"])
		row := sqlguard.Row{Table: "orders", Key: map[string]any{"id": 42}}
		guarded := func(token fence.Token) error {
			return k.do(t.Context(), db, nil, func(tx *sql.Tx) error { return g.Update(t.Context(), tx, holding(token), row, "") })
		}
		// byHand is a transaction that has read, and then was overtaken.
		byHand := func(token fence.Token, lock string, between func()) (outcome string) {
			if err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				_ = tx.QueryRow("SELECT state FROM orders WHERE id = 42").Scan(new(string)) // there may be none
				between()
				update := strings.NewReplacer(":lock", "'"+lock+"'", ":token", token.String()).Replace(readme["UPDATE"])
				result, err := tx.Exec(update)
				if err != nil {
					return err
				}
				if n, err := result.RowsAffected(); err != nil || n > 0 {
					outcome = "taken"
					return err
				}
				var bound string
				var seen int64
				err = tx.QueryRow(readme["SELECT"]).Scan(&bound, &seen)
				switch {
				case errors.Is(err, sql.ErrNoRows):
					outcome = "no such row"
					return nil
				case err != nil:
					return err
				case bound != lock:
					outcome = "other lock"
				case seen > int64(token):
					outcome = "stale"
				default:
					outcome = "taken" // as it was
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return outcome
		}
		nothing := func() {}
		for _, step := range []struct {
			token   fence.Token
			lock    string
			between func()
			want    string
		}{
			{fence.Max - 2, lock, nothing, "taken"},
			{fence.Max - 2, lock, nothing, "taken"},
			{5, lock, nothing, "stale"},
			{fence.Max, "shop/other", nothing, "other lock"},
			{fence.Max, strings.ToUpper(lock), nothing, "other lock"},
			{fence.Max - 2, lock, func() {
				if err := guarded(fence.Max - 1); err != nil {
					t.Error(err)
				}
			}, "stale"},
		} {
			if got := byHand(step.token, step.lock, step.between); got != step.want {
				t.Errorf("%d of %s: %s, want %s", step.token, step.lock, got, step.want)
			}
		}
		if err := guarded(5); !isStale(err, 5, fence.Max-1) {
			t.Errorf("the guard says %v, want that 5 is stale", err)
		}
		exec(t, db, "DELETE FROM orders")
		if got := byHand(fence.Max, lock, nothing); got != "no such row" {
			t.Errorf("by hand: %s, want no such row", got)
		}
	})
}
