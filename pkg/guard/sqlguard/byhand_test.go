package sqlguard_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// The SQL of README, for services in other languages, beside a service that uses
// the guard. It is the same for all databases, and reads the row where no row was
// changed: MySQL counts only what changes.
func TestTheSQLByHandSharesTheRowsOfTheGuard(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		byHand := func(token fence.Token, lock string) string {
			result, err := db.Exec(k.marks.Replace(`UPDATE doc SET body = 'shipped', fence_lock = $1, fence_token = $2
				WHERE id = 1 AND fence_lock IN ('', $3) AND fence_token <= $4`), lock, int64(token), lock, int64(token))
			if err != nil {
				t.Fatal(err)
			}
			if n, err := result.RowsAffected(); err != nil || n > 0 {
				return "taken"
			}
			var bound string
			var seen int64
			err = db.QueryRow("SELECT fence_lock, fence_token FROM doc WHERE id = 1").Scan(&bound, &seen)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return "no such row"
			case bound != lock:
				return "other lock"
			case seen > int64(token):
				return "stale"
			}
			return "taken" // as it was
		}
		for _, step := range []struct {
			token fence.Token
			lock  string
			want  string
		}{
			{fence.Max - 1, lock, "taken"}, {fence.Max - 1, lock, "taken"}, {5, lock, "stale"}, {fence.Max, "shop/other", "other lock"},
		} {
			if got := byHand(step.token, step.lock); got != step.want {
				t.Errorf("%d of %s: %s, want %s", step.token, step.lock, got, step.want)
			}
		}
		if err := k.update(t, db, g, 5, ""); !isStale(err, 5, fence.Max-1) {
			t.Errorf("the guard says %v, want that 5 is stale", err)
		}
		if err := k.update(t, db, g, fence.Max, ""); err != nil {
			t.Fatal(err)
		}
		if got := byHand(fence.Max-1, lock); got != "stale" {
			t.Errorf("by hand: %s, want stale", got)
		}
		exec(t, db, "DELETE FROM doc")
		if got := byHand(fence.Max, lock); got != "no such row" {
			t.Errorf("by hand: %s, want no such row", got)
		}
	})
}
