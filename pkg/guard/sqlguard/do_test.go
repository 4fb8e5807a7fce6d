package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// set has a transaction of Do write a text into a document.
func (k kind) set(ctx context.Context, tx *sqlguard.Tx, id int, text string) error {
	_, err := tx.ExecContext(ctx, k.marks.Replace("UPDATE doc SET body = $1 WHERE id = $2"), text, id)
	return err
}

func (k kind) write(ctx context.Context, db *sql.DB, g *sqlguard.Guard, token fence.Token, text string) error {
	return g.Do(ctx, db, holding(token), "doc/1", func(tx *sqlguard.Tx) error { return k.set(ctx, tx, 1, text) })
}

// A holder's transaction is the victim of a deadlock. It repeats the statement, as
// retry wrappers do, while the database has already let the next holder in.
func TestAStatementRepeatedAfterADeadlockReplacesNothingNewer(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		exec(t, db, "INSERT INTO doc (id, body) VALUES (2, ''), (3, ''), (4, ''), (5, ''), (6, ''), (7, ''), (8, '')")
		for _, ignores := range []bool{false, true} {
			if err := g.Reset(t.Context(), db, holding(4), "doc/1"); err != nil {
				t.Fatal(err)
			}
			attempts := 0
			var repeated error
			err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
				if attempts++; attempts > 1 {
					return k.set(t.Context(), tx, 1, "five again")
				}
				err := k.deadlock(t, db, tx)
				// The newer holder comes in, unless the transaction is still there.
				if err := k.write(t.Context(), db, g, 6, "six"); err != nil {
					t.Fatal(err)
				}
				repeated = k.set(t.Context(), tx, 1, "five, late")
				if ignores {
					return nil
				}
				return errors.Join(err, repeated)
			})
			if !isStale(err, 5, 6) || repeated == nil {
				t.Errorf("5 got error %v, its repeated statement %v, want that 5 is stale", err, repeated)
			}
			if got := body(t, db); got != "six" {
				t.Errorf("%q is there, want six", got)
			}
		}
	})
}

// deadlock makes tx the victim, and returns the error of its statement.
func (k kind) deadlock(t *testing.T, db *sql.DB, tx *sqlguard.Tx) error {
	stranger, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Rollback() // it has done enough
	// The one that has changed less is ended, or the one that waits longer.
	exec(t, stranger, "UPDATE doc SET body = 'much work' WHERE id > 3")
	exec(t, stranger, "UPDATE doc SET body = 'x' WHERE id = 3")
	if err := k.set(t.Context(), tx, 2, "h"); err != nil {
		t.Fatal(err)
	}
	theirs := make(chan error)
	if k.name == postgres.name {
		exec(t, stranger, "SET LOCAL deadlock_timeout = '1min'") // ours looks first
	}
	go func() {
		_, err := stranger.Exec("UPDATE doc SET body = 'x' WHERE id = 2")
		theirs <- err
	}()
	k.awaitWaiter(t, db)
	err = k.set(t.Context(), tx, 3, "h")
	if !mayBeRepeated(err) {
		t.Errorf("got error %v, want a deadlock", err)
	}
	if err := <-theirs; err != nil {
		t.Errorf("the stranger was ended: %v", err)
	}
	return err
}

// awaitWaiter returns when a transaction waits for another.
func (k kind) awaitWaiter(t *testing.T, db *sql.DB) {
	t.Helper()
	for n := 0; n == 0; {
		if err := db.QueryRowContext(t.Context(), k.waiting).Scan(new(string), &n); err != nil {
			t.Fatal(err)
		}
	}
}

// On MySQL a statement of DDL commits by itself, and takes the guard along.
func TestAfterAStatementThatCommitsNothingIsUnguarded(t *testing.T) {
	for _, again := range []bool{false, true} {
		db, g := mariaDB.database(t)
		err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
			if err := mariaDB.set(t.Context(), tx, 1, "five"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(t.Context(), "/* a comment */ CREATE TABLE t1 (id INT)"); err != nil {
				return err
			}
			if err := mariaDB.write(t.Context(), db, g, 6, "six"); err != nil {
				t.Fatal(err)
			}
			late := mariaDB.set(t.Context(), tx, 1, "five, late")
			if again {
				_, ddl := tx.ExecContext(t.Context(), "CREATE TABLE t2 (id INT)")
				late = errors.Join(late, ddl)
			}
			if late == nil {
				t.Error("a statement after the end was carried out")
			}
			return nil
		})
		if !errors.Is(err, sqlguard.ErrEnded) || errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("got error %v, want ErrEnded", err)
		}
		if got := body(t, db); got != "six" {
			t.Errorf("%q is there, want six", got)
		}
	}
	db, g := postgres.database(t)
	if err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
		_, err := tx.ExecContext(t.Context(), "CREATE TABLE t1 (id INT)")
		return err
	}); err != nil {
		t.Errorf("PostgreSQL: %v", err)
	}
}

func TestNobodyButDoEndsItsTransaction(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for _, statement := range []string{"COMMIT", " rollback", "Start Transaction", "BEGIN", "ROLLBACK;", "END"} {
			db, g := k.database(t)
			err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
				if _, err := tx.ExecContext(t.Context(), statement); err == nil {
					t.Errorf("%s was carried out", statement)
				}
				if _, err := tx.QueryContext(t.Context(), statement); err == nil {
					t.Errorf("%s was carried out", statement)
				}
				if _, err := tx.PrepareContext(t.Context(), statement); err == nil {
					t.Errorf("%s was prepared", statement)
				}
				if err := tx.QueryRowContext(t.Context(), statement).Scan(new(int)); err == nil {
					t.Errorf("%s was carried out", statement)
				}
				return k.set(t.Context(), tx, 1, "five")
			})
			if got := body(t, db); err != nil || got != "five" {
				t.Errorf("%s: left %q with error %v", statement, got, err)
			}
		}
	})
}

// Generated code and tracers put comments before what they send.
func TestAStatementIsKnownBehindItsComments(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		if err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
			for _, statement := range []string{"/* a trace */ COMMIT", "-- name: End :exec\n/**/ROLLBACK", "/*commit*/-- \nend"} {
				if _, err := tx.ExecContext(t.Context(), statement); err == nil {
					t.Errorf("%s was carried out", statement)
				}
			}
			update, err := tx.PrepareContext(t.Context(), "-- name: SetBody :exec\n/* commit; */ UPDATE doc SET body = 'five'")
			if err != nil {
				return err
			}
			_, err = update.ExecContext(t.Context())
			return err
		}); err != nil || body(t, db) != "five" {
			t.Errorf("left %q with error %v", body(t, db), err)
		}
	})
}

// What ends the transaction as a part of something longer is found right after.
func TestATransactionThatIsGoneIsFoundOut(t *testing.T) {
	db, g := postgres.database(t)
	err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
		if _, err := tx.ExecContext(t.Context(), "DO $$ BEGIN NULL; END $$"); err != nil {
			t.Error(err)
		}
		if _, err := tx.ExecContext(t.Context(), "SELECT 1; ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = postgres.set(t.Context(), tx, 1, "five, late")
		return nil
	})
	if got := body(t, db); got != "" || !errors.Is(err, sqlguard.ErrEnded) {
		t.Errorf("left %q with error %v, want ErrEnded", got, err)
	}
}

func TestSavepointsOfTheCallerWork(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		if err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
			var errs []error
			for _, s := range []string{
				"UPDATE doc SET body = 'kept'", "SAVEPOINT a", "UPDATE doc SET body = 'undone'", "ROLLBACK TO SAVEPOINT a", "RELEASE SAVEPOINT a",
			} {
				_, err := tx.ExecContext(t.Context(), s)
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}); err != nil {
			t.Error(err)
		}
		if got := body(t, db); got != "kept" {
			t.Errorf("left %q, want kept", got)
		}
	})
}

func TestWhatTheDatabaseEndsIsRepeatedAsAWhole(t *testing.T) {
	for _, level := range levels[1:] {
		db, g := postgres.database(t)
		g.Isolation = level
		attempts := 0
		err := g.Do(t.Context(), db, holding(6), "doc/1", func(tx *sqlguard.Tx) error {
			attempts++
			var text string
			if err := tx.QueryRowContext(t.Context(), "SELECT body FROM doc WHERE id = 1").Scan(&text); err != nil {
				return err
			}
			if attempts == 1 {
				exec(t, db, "UPDATE doc SET body = 'another'")
			}
			return postgres.set(t.Context(), tx, 1, text+" and six")
		})
		if got := body(t, db); err != nil || attempts != 2 || got != "another and six" {
			t.Errorf("%v: left %q in %d attempts with error %v", level, got, attempts, err)
		}
	}
}

// database/sql rolls back on its own when a context ends; what gives the session
// back must not come first.
func TestWhatIsCancelledInsideIsNeverCommitted(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		for range 300 {
			ctx, cancel := context.WithCancel(t.Context())
			err := g.Do(ctx, db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
				err := k.set(t.Context(), tx, 1, "cancelled")
				cancel()
				return err
			})
			if got := body(t, db); !errors.Is(err, fence.ErrNotApplied) || got != "" {
				t.Fatalf("left %q with error %v", got, err)
			}
		}
	})
}

// What is prepared is not seen by the transaction, and its errors come back by the
// work.
func TestWhatThePreparedMeetIsRepeatedToo(t *testing.T) {
	db, g := postgres.database(t)
	g.Isolation = sql.LevelRepeatableRead
	attempts := 0
	err := g.Do(t.Context(), db, holding(6), "doc/1", func(tx *sqlguard.Tx) error {
		if attempts++; attempts == 1 {
			exec(t, db, "UPDATE doc SET body = 'another'")
		}
		update, err := tx.PrepareContext(t.Context(), "UPDATE doc SET body = body || ' and six'")
		if err != nil {
			return err
		}
		if _, err = update.ExecContext(t.Context()); err != nil {
			return fmt.Errorf("update: %w", err)
		}
		return nil
	})
	if got := body(t, db); attempts != 2 || got != "another and six" || err != nil {
		t.Errorf("left %q in %d attempts with error %v", got, attempts, err)
	}
}

func TestAnErrorOfTheWorkRollsBackAndComesBackAsItIs(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		own := errors.New("not enough money")
		err := g.Do(t.Context(), db, holding(6), "doc/1", func(tx *sqlguard.Tx) error {
			return errors.Join(k.set(t.Context(), tx, 1, "six"), own)
		})
		if !errors.Is(err, own) || fence.Refused(err) || body(t, db) != "" {
			t.Errorf("left %q with error %v", body(t, db), err)
		}
		// It has not claimed either.
		if err := k.write(t.Context(), db, g, 5, "five"); err != nil {
			t.Error(err)
		}
		over, cancel := context.WithCancel(t.Context())
		err = g.Do(over, db, holding(6), "doc/1", func(tx *sqlguard.Tx) error {
			defer cancel()
			return k.set(t.Context(), tx, 1, "six")
		})
		if !errors.Is(err, fence.ErrNotApplied) || body(t, db) != "five" {
			t.Errorf("left %q with error %v, want that it was not applied", body(t, db), err)
		}
	})
}

func TestTheTransactionsOfOneHolderRunSideBySide(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		const workers = 8
		if err := g.Claim(t.Context(), db, holding(5), "doc/1"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var inside, all sync.WaitGroup
		inside.Add(workers)
		everybody := make(chan struct{})
		go func() {
			inside.Wait()
			close(everybody)
		}()
		for i := range workers {
			all.Go(func() {
				here := sync.OnceFunc(inside.Done)
				if err := g.Do(ctx, db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
					here()
					select {
					case <-everybody:
						return nil
					case <-ctx.Done():
						return fmt.Errorf("worker %d is alone", i)
					}
				}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// Of the one holder's transactions each lasts until the next has begun. If those
// were let past a newer holder that waits, it would wait for ever.
func TestTheNewestHolderGetsInAmongManyOfTheOne(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		db.SetMaxIdleConns(16)
		if err := g.Claim(t.Context(), db, holding(5), "doc/1"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := make(chan struct{})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for {
					err := g.Do(ctx, db, holding(5), "doc/1", func(*sqlguard.Tx) error {
						select { // one of those that are inside already may end
						case begun <- struct{}{}:
						case <-time.After(time.Second):
						}
						select {
						case <-begun:
						case <-time.After(time.Second):
						}
						return nil
					})
					if err != nil {
						if !isStale(err, 5, 6) {
							t.Errorf("5 got error %v", err)
						}
						return
					}
				}
			})
		}
		<-begun
		if err := g.Claim(ctx, db, holding(6), "doc/1"); err != nil {
			t.Errorf("6 got error %v", err)
		}
		all.Wait()
	})
}

// A driver may leave the statement of a caller that gave up waiting in the server.
func TestAClaimThatIsGivenUpLeavesTheServer(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		open, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer open.Rollback()
		if err := g.Check(t.Context(), open, holding(5), "doc/1"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if err := g.Claim(ctx, db, holding(6), "doc/1"); err == nil || fence.Refused(err) {
					t.Errorf("got error %v, want that it is too late", err)
				}
			})
		}
		all.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		for n := 1; n > 0; {
			if err := db.QueryRowContext(ctx, k.waiting).Scan(new(string), &n); err != nil {
				t.Fatalf("%d still wait: %v", n, err)
			}
		}
	})
}

func TestASessionIsGivenBackAsItWas(t *testing.T) {
	db, g := mariaDB.database(t)
	db.SetMaxOpenConns(1)
	const settings = "SELECT CONCAT_WS(' ', @@autocommit, @@wait_timeout, @@innodb_lock_wait_timeout, CONNECTION_ID())"
	before := column(t, db, settings)
	for _, token := range []fence.Token{5, 5, 4} {
		_ = g.Claim(t.Context(), db, holding(token), "doc/1")
	}
	if after := column(t, db, settings); after != before {
		t.Errorf("the session has %s, and had %s", after, before)
	}
}

func TestAFurtherResourceIsBoundToo(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		if err := g.Claim(t.Context(), db, fence.Holding{Lock: "shop/other", Token: 1}, "doc/2"); err != nil {
			t.Fatal(err)
		}
		err := g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
			if err := k.set(t.Context(), tx, 1, "five"); err != nil {
				return err
			}
			if err := tx.Bind(t.Context(), "doc/3"); err != nil {
				t.Error(err)
			}
			_ = tx.Bind(t.Context(), "doc/2") // and is passed over
			return nil
		})
		var other *fence.OtherLockError
		if !errors.As(err, &other) || other.Resource != "doc/2" || other.Bound != "shop/other" || body(t, db) != "" {
			t.Errorf("left %q with error %v, want that doc/2 has another lock", body(t, db), err)
		}
	})
}
