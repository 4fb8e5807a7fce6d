package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

func TestATransactionLeftOpenIsRefusedOnceANewerHolderHasCommitted(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name := range k.forms(nil) {
			t.Run(name, func(t *testing.T) {
				db, g := k.database(t)
				write := k.forms(g)[name]
				open, err := db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				defer open.Rollback()
				exec(t, open, "SELECT 1")
				if err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error { return write(t.Context(), tx, 6) }); err != nil {
					t.Fatal(err)
				}
				if err := write(t.Context(), open, 5); !isStale(err, 5, 6) {
					t.Errorf("got error %v, want that 5 is stale", err)
				}
			})
		}
	})
}

func TestANewerHolderWaitsForAnOlderOneThatHasChecked(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name := range k.forms(nil) {
			t.Run(name, func(t *testing.T) {
				db, g := k.database(t)
				write := k.forms(g)[name]
				open, err := db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				defer open.Rollback() // does nothing after a commit
				if err := write(t.Context(), open, 5); err != nil {
					t.Fatal(err)
				}
				claim := func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
					if name == "table" {
						return g.Check(ctx, tx, holding(token), "doc/1")
					}
					return g.Update(ctx, tx, holding(token), document1, "")
				}
				var before string
				newer := make(chan error)
				go func() {
					newer <- k.do(t.Context(), db, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, func(tx *sql.Tx) error {
						if err := claim(t.Context(), tx, 6); err != nil {
							return err
						}
						if err := tx.QueryRow("SELECT body FROM doc WHERE id = 1").Scan(&before); err != nil {
							return err
						}
						return write(t.Context(), tx, 6)
					})
				}()
				k.awaitWaiter(t, db)
				if err := open.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := <-newer; err != nil {
					t.Fatal(err)
				}
				if got := body(t, db); before != "5" || got != "6" {
					t.Errorf("the newer holder read %q and left %q, want 5 and 6", before, got)
				}
			})
		}
	})
}

func TestACheckThatIsRolledBackIsForgotten(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name := range k.forms(nil) {
			t.Run(name, func(t *testing.T) {
				db, g := k.database(t)
				write, stop := k.forms(g)[name], errors.New("stop")
				if err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
					return errors.Join(write(t.Context(), tx, 99), stop)
				}); !errors.Is(err, stop) {
					t.Fatal(err)
				}
				if err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error { return write(t.Context(), tx, 1) }); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// This is why Check comes first. PostgreSQL notices; MySQL does not.
func TestWhatIsReadBeforeTheCheckMayBeOld(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		write := k.forms(g)["table"]
		o := &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
		read := func(tx *sql.Tx) (body string, err error) {
			return body, tx.QueryRow("SELECT body FROM doc WHERE id = 1").Scan(&body)
		}
		var after string
		err := k.do(t.Context(), db, o, func(tx *sql.Tx) (err error) {
			if _, err := read(tx); err != nil {
				return err
			}
			if err := k.do(t.Context(), db, nil, func(older *sql.Tx) error { return write(t.Context(), older, 5) }); err != nil {
				t.Fatal(err)
			}
			if err := g.Check(t.Context(), tx, holding(6), "doc/1"); err != nil {
				return err
			}
			after, err = read(tx)
			return err
		})
		if old := err == nil && after == ""; !old && !mayBeRepeated(err) {
			t.Errorf("read %q, error %v, want what was there first, or that the transaction must be repeated", after, err)
		}
		err = k.do(t.Context(), db, o, func(tx *sql.Tx) (err error) {
			if err := g.Check(t.Context(), tx, holding(6), "doc/1"); err != nil {
				return err
			}
			after, err = read(tx)
			return err
		})
		if err != nil || after != "5" {
			t.Errorf("read %q after the check, error %v, want 5", after, err)
		}
	})
}

// A vagueTx answers statements as a server or a driver might that does not know
// of LAST_INSERT_ID(x).
type vagueTx struct {
	*sql.Tx
	id  int64
	err error
}

func (v vagueTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if r, err := v.Tx.ExecContext(ctx, query, args...); err != nil {
		return r, err
	}
	return v, nil
}

func (v vagueTx) LastInsertId() (int64, error) { return v.id, v.err }
func (v vagueTx) RowsAffected() (int64, error) { return 1, v.err }

func TestMySQLIsAskedAgainWhereItsAnswerHasNoToken(t *testing.T) {
	db, g := mariaDB.database(t)
	if err := g.Claim(t.Context(), db, holding(6), "doc/1"); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []vagueTx{{id: 0}, {id: 4}, {id: 6, err: errors.New("not supported")}} {
		if err := mariaDB.do(t.Context(), db, nil, func(tx *sql.Tx) error {
			answer.Tx = tx
			return g.Check(t.Context(), answer, holding(5), "doc/1")
		}); !isStale(err, 5, 6) {
			t.Errorf("%d, %v: got error %v, want that 5 is stale", answer.id, answer.err, err)
		}
	}
}
