package sqlguard_test

import (
	"cmp"
	"database/sql"
	"errors"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// update makes one Update of document 1.
func (k kind) update(t testing.TB, db *sql.DB, g *sqlguard.Guard, token fence.Token, set string, args ...any) error {
	return k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
		return g.Update(t.Context(), tx, holding(token), document1, k.marks.Replace(set), args...)
	})
}

func TestARowThatWasThereBeforeItsColumnsTakesAnyToken(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name, columns := range map[string]string{
			"from the schema":   "",
			"that are nullable": "ALTER TABLE doc ADD COLUMN fence_lock VARCHAR(576), ADD COLUMN fence_token BIGINT",
		} {
			t.Run(name, func(t *testing.T) {
				db, g := k.database(t)
				exec(t, db, "ALTER TABLE doc DROP COLUMN fence_lock, DROP COLUMN fence_token")
				exec(t, db, cmp.Or(columns, g.Columns("doc")))
				if err := k.update(t, db, g, 5, "body = $1", "five"); err != nil {
					t.Fatal(err)
				}
				if err := k.update(t, db, g, 4, "body = $1", "four"); !isStale(err, 4, 5) {
					t.Errorf("got error %v, want that 4 is stale", err)
				}
				if got := body(t, db); got != "five" {
					t.Errorf("got %q, want five", got)
				}
			})
		}
	})
}

func TestARowThatIsMissingIsNoRefusalAndNoSuccess(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		exec(t, db, "DELETE FROM doc")
		if err := k.update(t, db, g, 5, "body = $1", "five"); !errors.Is(err, sql.ErrNoRows) || fence.Refused(err) {
			t.Errorf("got error %v, want sql.ErrNoRows", err)
		}
	})
}

func TestAnUpdateThatChangesNothingSucceeds(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		for range 3 {
			if err := k.update(t, db, g, 5, "body = $1", "five"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhatIsSetMayUseWhatIsThere(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		for _, set := range []string{"body = concat(body, 'a')", "body = concat('b', body)"} {
			if err := k.update(t, db, g, 5, set); err != nil {
				t.Error(err)
			}
		}
		if got := body(t, db); got != "ba" {
			t.Errorf("got %q, want ba", got)
		}
	})
}

func TestUpdateKeepsItsHandsOffTheCallersArguments(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		args := make([]any, 10)
		args[0] = "five"
		if err := k.update(t, db, g, 5, "body = $1", args[:1]...); err != nil || args[1] != nil {
			t.Errorf("left %q with error %v", args, err)
		}
	})
}

// A statement that waits and changes at once would compute from before its wait.
func TestAnUpdateThatWaitedComputesFromWhatIsThere(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		exec(t, db, "CREATE TABLE ledger (amount INT)")
		exec(t, db, "INSERT INTO ledger VALUES (100)")
		const sum = "body = (SELECT SUM(amount) FROM ledger)"
		o := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
		update := func(tx *sql.Tx, token fence.Token) error {
			return g.Update(t.Context(), tx, holding(token), document1, sum)
		}
		open, err := db.BeginTx(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer open.Rollback() // does nothing after a commit
		exec(t, open, "INSERT INTO ledger VALUES (50)")
		if err := update(open, 5); err != nil {
			t.Fatal(err)
		}
		newer := make(chan error)
		go func() { newer <- k.do(t.Context(), db, o, func(tx *sql.Tx) error { return update(tx, 6) }) }()
		k.awaitWaiter(t, db)
		if err := open.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-newer; err != nil {
			t.Fatal(err)
		}
		if got := body(t, db); got != "150" {
			t.Errorf("got %s, want the 150 of the ledger", got)
		}
	})
}

func TestAKeyOfSeveralColumnsIsOneRow(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		exec(t, db, "CREATE TABLE orders (tenant INT, id INT, body TEXT, PRIMARY KEY (tenant, id))")
		exec(t, db, g.Columns("orders"))
		exec(t, db, "INSERT INTO orders (tenant, id, body) VALUES (1, 1, ''), (1, 2, ''), (2, 1, '')")
		update := func(token fence.Token, key map[string]any) error {
			return k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				row := sqlguard.Row{Table: "orders", Key: key}
				return g.Update(t.Context(), tx, holding(token), row, k.marks.Replace("body = $1"), token.String())
			})
		}
		if err := update(5, map[string]any{"tenant": 1, "id": 2}); err != nil {
			t.Error(err)
		}
		var stale *fence.StaleError
		if err := update(4, map[string]any{"tenant": 1, "id": 2}); !errors.As(err, &stale) || stale.Resource != "orders id=2 tenant=1" {
			t.Errorf("got error %v, want that 4 is stale", err)
		}
		for _, key := range []map[string]any{{"tenant": 1}, {}} {
			if err := update(6, key); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("%v: got error %v, want that it is no key", key, err)
			}
		}
		if got := column(t, db, "SELECT concat(tenant, id, body) FROM orders ORDER BY tenant, id"); got != "11 125 21" {
			t.Errorf("the table has %s", got)
		}
	})
}

func TestARowCarriesTheTokenOfOneLock(t *testing.T) {
	db, g := postgres.database(t)
	g.Locks = []string{lock, "shop/other"}
	if err := postgres.update(t, db, g, 5, ""); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
}

func TestARowThatDoesNotTakeTheUpdateIsNoSuccess(t *testing.T) {
	db, g := postgres.database(t)
	exec(t, db, `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	exec(t, db, `CREATE TRIGGER keep BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION keep()`)
	if err := postgres.update(t, db, g, 5, "body = $1", "five"); err == nil || fence.Refused(err) {
		t.Errorf("got error %v, want that the row stays as it is", err)
	}
}

func TestTheErrorOfAnUpdateIsTheDatabasesOwn(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		for _, row := range []sqlguard.Row{
			{Table: "absent", Key: map[string]any{"id": 1}}, {Table: "doc", Key: map[string]any{"absent": 1}},
		} {
			err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				return g.Update(t.Context(), tx, holding(5), row, "")
			})
			if err == nil || fence.Refused(err) || errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%v: got error %v", row, err)
			}
		}
	})
}
