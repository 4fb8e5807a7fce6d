package sqlguard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// A statement of DDL commits what came before it, and may then fail: for others'
// locks, which would count as nothing changed, or for itself.
func TestWhatAFailedStatementHasCommittedIsNeitherRepeatedNorToldAsRolledBack(t *testing.T) {
	for name, statement := range map[string]string{
		"a lock timeout":  "ALTER TABLE busy ADD COLUMN x INT",
		"its own failure": "ALTER TABLE doc ADD COLUMN body TEXT",
		"none":            "CREATE TABLE fresh (id INT)",
	} {
		db, g := mariaDB.database(t)
		exec(t, db, "CREATE TABLE busy (id INT) ENGINE = InnoDB")
		stranger, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(t, stranger, "INSERT INTO busy VALUES (1)") // and so holds the table
		attempts, own := 0, errors.New("another thing went wrong")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err = g.Do(ctx, db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
			attempts++
			for _, s := range []string{
				"SET SESSION lock_wait_timeout = 1", "UPDATE doc SET body = CONCAT(body, '+10') WHERE id = 1", statement,
			} {
				if _, err := tx.ExecContext(ctx, s); err != nil {
					return errors.Join(own, err)
				}
			}
			return own
		})
		cancel()
		_ = stranger.Rollback()
		if got := body(t, db); attempts != 1 || got != "+10" {
			t.Errorf("%s: left %q in %d attempts, want one", name, got, attempts)
		}
		if !errors.Is(err, sqlguard.ErrEnded) || !errors.Is(err, own) || errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("%s: got error %v, want ErrEnded and its own", name, err)
		}
	}
}

// Where the answer is lost, what was committed cannot be known.
func TestACommitThatCannotBeSeenIsNotToldAsRolledBack(t *testing.T) {
	db, g := mariaDB.database(t)
	for _, own := range []error{nil, errors.New("another thing went wrong")} {
		ctx, cancel := context.WithCancel(t.Context())
		err := g.Do(ctx, db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
			err := mariaDB.set(ctx, tx, 1, "five")
			_, ddl := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS fresh (id INT)")
			cancel()
			return errors.Join(err, ddl, own)
		})
		if !errors.Is(err, sqlguard.ErrEnded) || errors.Is(err, fence.ErrNotApplied) || body(t, db) != "five" {
			t.Errorf("left %q with error %v, want ErrEnded", body(t, db), err)
		}
	}
}

// What is prepared is executed past the Tx. After its deadlock MySQL has begun
// another transaction, unguarded, and DDL would commit that.
func TestWhatIsPreparedAndRepeatedAfterADeadlockReplacesNothingNewer(t *testing.T) {
	db, g := mariaDB.database(t)
	exec(t, db, "INSERT INTO doc (id, body) VALUES (2, ''), (3, ''), (4, ''), (5, ''), (6, ''), (7, ''), (8, '')")
	err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
		update, err := tx.PrepareContext(t.Context(), "UPDATE doc SET body = ? WHERE id = ?")
		if err != nil {
			return err
		}
		set := func(id int, text string) error {
			_, err := update.ExecContext(t.Context(), text, id)
			return err
		}
		_ = mariaDB.deadlock(t, db, set)
		if err := mariaDB.write(t.Context(), db, g, 6, "six"); err != nil {
			t.Fatal(err)
		}
		if err := set(1, "five, late"); err != nil {
			t.Error(err)
		}
		if _, err := tx.ExecContext(t.Context(), "CREATE TABLE fresh (id INT)"); !errors.Is(err, sqlguard.ErrEnded) {
			t.Errorf("DDL: got error %v, want ErrEnded", err)
		}
		return nil
	})
	if got := body(t, db); got != "six" || !errors.Is(err, sqlguard.ErrEnded) {
		t.Errorf("left %q with error %v, want six and ErrEnded", got, err)
	}
}

// What PostgreSQL refuses of DDL takes all that came before it back.
func TestAFailedStatementOfPostgreSQLRollsBack(t *testing.T) {
	db, g := postgres.database(t)
	err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
		err := postgres.set(t.Context(), tx, 1, "five")
		_, ddl := tx.ExecContext(t.Context(), "ALTER TABLE doc ADD COLUMN body TEXT")
		return errors.Join(err, ddl)
	})
	if err == nil || errors.Is(err, sqlguard.ErrEnded) || body(t, db) != "" {
		t.Errorf("left %q with error %v", body(t, db), err)
	}
}
