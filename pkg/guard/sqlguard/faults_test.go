package sqlguard_test

import (
	"bytes"
	"database/sql"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A breaker is a connection that breaks when the driver commits.
type breaker struct {
	net.Conn
	armed  *atomic.Bool
	heard  bool // whether the server gets to know, and only its answer is lost
	broken atomic.Bool
}

func (b *breaker) Write(p []byte) (int, error) {
	if b.armed.Load() && bytes.Contains(bytes.ToLower(p), []byte("commit")) {
		b.broken.Store(true)
		if !b.heard {
			return 0, errors.Join(io.ErrClosedPipe, b.Close())
		}
	}
	return b.Conn.Write(p)
}

func (b *breaker) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p) // when it has answered, it has committed
	if b.broken.Load() {
		return 0, errors.Join(io.ErrUnexpectedEOF, b.Close())
	}
	return n, err
}

func TestACommitWhoseConnectionBreaksIsNeverASuccess(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name := range k.forms(nil) {
			for fate, heard := range map[string]bool{"the request is lost": false, "the answer is lost": true} {
				t.Run(name+", "+fate, func(t *testing.T) {
					armed := new(atomic.Bool)
					db, g := k.wrapping(func(c net.Conn) net.Conn { return &breaker{Conn: c, armed: armed, heard: heard} }).database(t)
					write := k.forms(g)[name]
					attempt := func(token fence.Token) error {
						return k.do(t.Context(), db, nil, func(tx *sql.Tx) error { return write(t.Context(), tx, token) })
					}
					if err := attempt(5); err != nil {
						t.Fatal(err)
					}
					armed.Store(true)
					err := attempt(6)
					armed.Store(false)
					if err == nil || fence.Refused(err) || mayBeRepeated(err) {
						t.Errorf("got error %v, want one that leaves it open", err)
					}
					if got := body(t, db); heard != (got == "6") {
						t.Errorf("%s is there afterwards", got)
					}
					// Token and text have the same fate.
					if err := attempt(5); heard != isStale(err, 5, 6) {
						t.Errorf("token 5 got error %v afterwards", err)
					}
					if err := attempt(6); err != nil || body(t, db) != "6" {
						t.Errorf("the repetition left %s with error %v", body(t, db), err)
					}
				})
			}
		}
	})
}

func TestASessionKilledAfterTheCheckChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name := range k.forms(nil) {
			t.Run(name, func(t *testing.T) {
				db, g := k.database(t)
				write := k.forms(g)[name]
				err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
					var id int64
					if err := tx.QueryRow(k.session).Scan(&id); err != nil {
						t.Fatal(err)
					}
					if err := write(t.Context(), tx, 6); err != nil {
						t.Fatal(err)
					}
					exec(t, db, k.kill, id)
					return nil
				})
				if err == nil || fence.Refused(err) {
					t.Errorf("got error %v, want that the connection is gone", err)
				}
				if got := body(t, db); got != "" {
					t.Errorf("%s is there", got)
				}
				// Its locks are gone too, and its token.
				if err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error { return write(t.Context(), tx, 5) }); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

func TestADeadlockIsNoRefusal(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		var txs [2]*sql.Tx
		locks := [2]string{"shop/a", "shop/b"}
		for i := range txs {
			if err := g.Claim(t.Context(), db, fence.Holding{Lock: locks[i], Token: 1}, locks[i]); err != nil {
				t.Fatal(err)
			}
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback() // does nothing after a commit
			txs[i] = tx
		}
		for i, tx := range txs {
			if err := g.Check(t.Context(), tx, fence.Holding{Lock: locks[i], Token: 2}, locks[i]); err != nil {
				t.Fatal(err)
			}
		}
		errs := make(chan error, 2)
		for i, tx := range txs {
			go func() {
				err := g.Check(t.Context(), tx, fence.Holding{Lock: locks[1-i], Token: 2}, locks[1-i])
				if err == nil {
					err = tx.Commit()
				} else {
					err = errors.Join(err, tx.Rollback())
				}
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		if first == nil {
			first, second = second, first
		}
		if !mayBeRepeated(first) || fence.Refused(first) || second != nil {
			t.Errorf("got errors %v and %v, want one deadlock", first, second)
		}
	})
}

func TestASerializationFailureIsNoRefusal(t *testing.T) {
	for name := range postgres.forms(nil) {
		for _, level := range levels[1:] {
			t.Run(name+" at "+level.String(), func(t *testing.T) {
				db, g := postgres.database(t)
				write, o := postgres.forms(g)[name], &sql.TxOptions{Isolation: level}
				rounds := 0
				_, err := postgres.again(t.Context(), db, o, func(tx *sql.Tx) error {
					rounds++
					body := ""
					if err := tx.QueryRow("SELECT body FROM doc WHERE id = 1").Scan(&body); err != nil {
						return err
					}
					if rounds == 1 {
						if err := postgres.do(t.Context(), db, nil, func(tx *sql.Tx) error { return write(t.Context(), tx, 6) }); err != nil {
							t.Fatal(err)
						}
					}
					err := write(t.Context(), tx, 5)
					if rounds == 1 && (!mayBeRepeated(err) || fence.Refused(err)) {
						t.Errorf("got error %v, want a serialization failure", err)
					}
					return err
				})
				if rounds != 2 || !isStale(err, 5, 6) {
					t.Errorf("got error %v in round %d, want that 5 is stale in round 2", err, rounds)
				}
			})
		}
	}
}
