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

// PostgreSQL rolls back at the commit of what has failed, or fails there. Either is
// its answer, and so no unknown outcome.
func TestAConstraintThatIsBrokenIsNotApplied(t *testing.T) {
	db, g := postgres.database(t)
	exec(t, db, "CREATE TABLE seat (id INT, n INT UNIQUE DEFERRABLE INITIALLY DEFERRED)")
	for name, statements := range map[string][]string{
		"a key that is there, passed over": {"INSERT INTO doc (id) VALUES (1)"},
		"a key that is looked at later":    {"INSERT INTO seat VALUES (1, 1)", "INSERT INTO seat VALUES (2, 1)"},
	} {
		err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
			for _, s := range statements {
				_, _ = tx.ExecContext(t.Context(), s)
			}
			return nil
		})
		if !errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("%s: got error %v, want ErrNotApplied", name, err)
		}
	}
	// One that is rolled back to a savepoint is over.
	if err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
		var errs []error
		for _, s := range []string{"SAVEPOINT a", "INSERT INTO doc (id) VALUES (1)", "ROLLBACK TO SAVEPOINT a", "UPDATE doc SET body = 'five'"} {
			_, err := tx.ExecContext(t.Context(), s)
			errs = append(errs, err)
		}
		return errors.Join(errs[0], errs[2], errs[3])
	}); err != nil || body(t, db) != "five" {
		t.Errorf("left %q with error %v", body(t, db), err)
	}
}

// A coded error is that of a database.
type coded string

func (c coded) Error() string    { return "result is ambiguous" }
func (c coded) SQLState() string { return string(c) }

func TestWhatMayHaveBeenDoneIsNotRepeated(t *testing.T) {
	db, g := postgres.database(t)
	for code, want := range map[coded]int{"40001": 3, "40003": 1} { // statement completion unknown
		attempts := 0
		err := g.Do(t.Context(), db, holding(5), "doc/1", func(*sqlguard.Tx) error {
			if attempts++; attempts < 3 {
				return code
			}
			return nil
		})
		if attempts != want || (want == 1) != errors.Is(err, code) {
			t.Errorf("%s: %d attempts with error %v, want %d", string(code), attempts, err, want)
		}
	}
}
