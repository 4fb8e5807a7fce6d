package sqlguard_test

import (
	"cmp"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// schemaOf is where the tables are.
func schemaOf(g *sqlguard.Guard) string { return cmp.Or(g.Schema, "pawl") }

func TestPruneForgetsAResourceWithTheLastOfItsLocks(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		two := &sqlguard.Guard{Dialect: k.dialect, Schema: g.Schema, Locks: []string{"a/a", "b/b"}}
		claim := func(g *sqlguard.Guard, lock, resource string) {
			t.Helper()
			if err := g.Claim(t.Context(), db, fence.Holding{Lock: lock, Token: 5}, resource); err != nil {
				t.Fatal(err)
			}
		}
		prune := func(want int, ago time.Duration) {
			t.Helper()
			if n, err := g.Prune(t.Context(), db, time.Now().Add(-ago)); n != want || err != nil {
				t.Fatalf("pruned %d, error %v, want %d", n, err, want)
			}
		}
		forget := func() { exec(t, db, "DELETE FROM "+schemaOf(g)+".fence") } // as an earlier Prune did
		claim(two, "a/a", "one of two")                                       // b/b has no token
		prune(1, -time.Hour)
		claim(g, "c/c", "one of two")
		claim(two, "a/a", "both")
		forget()
		claim(g, "b/b", "other")
		prune(0, time.Hour)
		if seen, err := g.Seen(t.Context(), db, "both"); len(seen) != 2 || err != nil {
			t.Errorf("b/b is known, and both is bound to %v, error %v", seen, err)
		}
		forget()
		prune(0, time.Hour)
		for _, resource := range []string{"one of two", "both", "other"} {
			if seen, err := g.Seen(t.Context(), db, resource); len(seen) != 0 || err != nil {
				t.Errorf("%s is still bound to %v, error %v", resource, seen, err)
			}
		}
		if n := column(t, db, "SELECT count(*) FROM "+schemaOf(g)+".fence"); n != "0" {
			t.Errorf("%s rows are left of the tokens", n)
		}
	})
}

// Who comes with a token while its lock is not known keeps the binding that was there.
func TestPruneWaitsForAHolderThatIsJustComing(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		if err := g.Claim(t.Context(), db, holding(5), "doc/1"); err != nil {
			t.Fatal(err)
		}
		exec(t, db, "DELETE FROM "+schemaOf(g)+".fence")
		pruned := make(chan error, 1)
		err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
			if err := g.Check(t.Context(), tx, holding(6), "doc/1"); err != nil {
				return err
			}
			go func() {
				_, err := g.Prune(t.Context(), db, time.Now().Add(-time.Hour))
				pruned <- err
			}()
			k.awaitWaiter(t, db)
			return nil
		})
		if err := errors.Join(err, <-pruned); err != nil {
			t.Fatal(err)
		}
		if seen, err := g.Seen(t.Context(), db, "doc/1"); seen[lock] != 6 || err != nil {
			t.Errorf("doc/1 has seen %v, error %v, want 6", seen, err)
		}
	})
}
