package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// update makes one Update of document 1.
func (k kind) update(t testing.TB, db *sql.DB, token fence.Token, set string, args ...any) error {
	return k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
		return k.dialect.Update(t.Context(), tx, document1, "shop/doc", token, k.marks.Replace(set), args...)
	})
}

func TestARowThatWasThereBeforeItsColumnsTakesAnyToken(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name, columns := range map[string]string{
			"from the schema":   k.dialect.Columns("doc"),
			"that are nullable": "ALTER TABLE doc ADD COLUMN fence_lock VARCHAR(576), ADD COLUMN fence_token BIGINT",
		} {
			t.Run(name, func(t *testing.T) {
				db := k.database(t)
				exec(t, db, "INSERT INTO doc (id, body) VALUES (1, 'old')")
				exec(t, db, columns)
				if err := k.update(t, db, 5, "body = $1", "five"); err != nil {
					t.Fatal(err)
				}
				if err := k.update(t, db, 4, "body = $1", "four"); !isStale(err, 4, 5) {
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
		db := k.guarded(t)
		exec(t, db, "DELETE FROM doc")
		if err := k.update(t, db, 5, "body = $1", "five"); !errors.Is(err, sql.ErrNoRows) || refused(err) {
			t.Errorf("got error %v, want sql.ErrNoRows", err)
		}
	})
}

func TestAnUpdateThatChangesNothingSucceeds(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		db := k.guarded(t)
		for range 3 {
			if err := k.update(t, db, 5, "body = $1", "five"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhatIsSetMayUseWhatIsThere(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		db := k.guarded(t)
		for _, set := range []string{"body = concat(body, 'a')", "body = concat('b', body)"} {
			if err := k.update(t, db, 5, set); err != nil {
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
		db := k.guarded(t)
		args := make([]any, 10)
		args[0] = "five"
		if err := k.update(t, db, 5, "body = $1", args[:1]...); err != nil || args[1] != nil {
			t.Errorf("left %q with error %v", args, err)
		}
	})
}

// A lateTx is a transaction in which something happens before and after the look
// at why the first statement changed nothing.
type lateTx struct {
	*sql.Tx
	before, after func()
}

func (l lateTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	l.before()
	defer l.after()
	return l.Tx.QueryRowContext(ctx, query, args...)
}

func TestARowThatAppearsMeanwhileIsLockedAndUpdated(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.guarded(t)
		exec(t, db, "DELETE FROM doc")
		late := lateTx{
			before: func() { exec(t, db, "INSERT INTO doc (id, body) VALUES (1, 'new')") },
			after: func() {
				if _, err := db.Exec("SELECT id FROM doc FOR UPDATE NOWAIT"); err == nil {
					t.Error("another transaction can lock it")
				}
			},
		}
		o := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
		err := k.do(t.Context(), db, o, func(tx *sql.Tx) error {
			late.Tx = tx
			return k.dialect.Update(t.Context(), late, document1, "shop/doc", 5, k.marks.Replace("body = $1"), "five")
		})
		if got := body(t, db); err != nil || got != "five" {
			t.Errorf("left %q with error %v, want five", got, err)
		}
	})
}

func TestARowThatDoesNotTakeTheUpdateIsNoSuccess(t *testing.T) {
	db := postgres.guarded(t)
	exec(t, db, `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	exec(t, db, `CREATE TRIGGER keep BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION keep()`)
	if err := postgres.update(t, db, 5, "body = $1", "five"); err == nil || refused(err) {
		t.Errorf("got error %v, want that the row stays as it is", err)
	}
}

func TestTheErrorOfAnUpdateIsTheDatabasesOwn(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.guarded(t)
		for _, row := range []sqlguard.Row{{Table: "absent", Key: "id", ID: 1}, {Table: "doc", Key: "absent", ID: 1}} {
			err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				return k.dialect.Update(t.Context(), tx, row, "shop/doc", 5, "")
			})
			if err == nil || refused(err) || errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%v: got error %v", row, err)
			}
		}
	})
}
