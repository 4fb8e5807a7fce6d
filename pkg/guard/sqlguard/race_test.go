package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

const lock = "shop/doc"

func holding(token fence.Token) fence.Holding { return fence.Holding{Lock: lock, Token: token} }

// A transaction writes the token into document 1, as its holder.
type transaction func(ctx context.Context, tx *sql.Tx, token fence.Token) error

// forms are the two ways to guard document 1 in a transaction of the caller.
func (k kind) forms(g *sqlguard.Guard) map[string]transaction {
	return map[string]transaction{
		"table": func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
			if err := g.Check(ctx, tx, holding(token), "doc/1"); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, k.marks.Replace("UPDATE doc SET body = $1 WHERE id = 1"), token.String())
			return err
		},
		"row": func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
			return g.Update(ctx, tx, holding(token), document1, k.marks.Replace("body = $1"), token.String())
		},
	}
}

var document1 = sqlguard.Row{Table: "doc", Key: map[string]any{"id": 1}}

// do makes one transaction of the caller.
func (k kind) do(ctx context.Context, db *sql.DB, o *sql.TxOptions, body func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := body(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// again makes a transaction until the database lets it end by itself, and
// returns how often it did not.
func (k kind) again(ctx context.Context, db *sql.DB, o *sql.TxOptions, body func(*sql.Tx) error) (ended int, err error) {
	for {
		if err = k.do(ctx, db, o, body); !mayBeRepeated(err) {
			return ended, err
		}
		ended++
	}
}

func body(t testing.TB, db *sql.DB) (body string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT body FROM doc WHERE id = 1").Scan(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

func TestTheNewerOfTwoHoldersThatRaceHasTheLastWord(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		for name, write := range k.forms(g) {
			t.Run(name, func(t *testing.T) {
				for i := range 1000 {
					older, newer := fence.Token(10*i+5), fence.Token(10*i+6)
					o := &sql.TxOptions{Isolation: levels[i%len(levels)]}
					attempt := func(token fence.Token) error {
						_, err := k.again(t.Context(), db, o, func(tx *sql.Tx) error { return write(t.Context(), tx, token) })
						return err
					}
					order := []fence.Token{older, newer}
					if i%2 == 1 {
						order = []fence.Token{newer, older}
					}
					errs := make([]error, 2)
					var both sync.WaitGroup
					for n, token := range order {
						both.Go(func() { errs[n] = attempt(token) })
					}
					both.Wait()
					for n, err := range errs {
						if err != nil && (order[n] == newer || !isStale(err, older, newer)) {
							t.Fatalf("round %d at %v: token %d got error %v", i, o.Isolation, order[n], err)
						}
					}
					if err := attempt(older); !isStale(err, older, newer) {
						t.Fatalf("round %d at %v: token %d came late and got error %v", i, o.Isolation, older, err)
					}
					if got := body(t, db); got != newer.String() {
						t.Fatalf("round %d at %v: got %s in the end, want %d", i, o.Isolation, got, newer)
					}
				}
			})
		}
	})
}

func isStale(err error, token, seen fence.Token) bool {
	var stale *fence.StaleError
	return errors.As(err, &stale) && stale.Lock == lock && stale.Token == token && stale.Seen == seen && stale.NotApplied
}

// crowd makes 1,600 transactions at the same time, on 40 connections, and
// returns how many of them the database ended.
func (k kind) crowd(t *testing.T, db *sql.DB, body func(tx *sql.Tx, i int) error) (ended int) {
	t.Helper()
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range 1600 {
		all.Go(func() {
			// At this level, waiting is all that two transactions can do to
			// each other, unless they wait for each other.
			n, err := k.again(t.Context(), db, &sql.TxOptions{Isolation: sql.LevelReadCommitted},
				func(tx *sql.Tx) error { return body(tx, i) })
			mu.Lock()
			defer mu.Unlock()
			ended += n
			if err != nil && !errors.Is(err, fence.ErrStale) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return ended
}

func TestNoDeadlockOnOneLock(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name := range k.forms(nil) {
			db, g := k.database(t)
			write := k.forms(g)[name]
			if n := k.crowd(t, db, func(tx *sql.Tx, i int) error {
				return write(t.Context(), tx, fence.Token(1+rand.IntN(1600)))
			}); n > 0 {
				t.Errorf("%s: the database ended %d transactions", name, n)
			}
		}
	})
}

func TestNoDeadlockOnTwoLocksOfOneHolding(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		const locks = 6
		db, g := k.database(t)
		two := func(tx *sql.Tx, a, b int, token fence.Token) error {
			name := func(i int) string { return fmt.Sprintf("shop/%d", i) }
			h := fence.Holding{Lock: name(b), Token: token, With: map[string]fence.Token{name(a): token}}
			return g.Check(t.Context(), tx, h, fmt.Sprintf("doc/%d/%d", a, b))
		}
		random := func(tx *sql.Tx, i int) error {
			first := rand.IntN(locks - 1)
			return two(tx, first, first+1+rand.IntN(locks-first-1), fence.Token(i+1))
		}
		t.Logf("while the locks are new, the database ended %d transactions", k.crowd(t, db, random))
		for i := range locks - 1 {
			if err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error { return two(tx, i, i+1, fence.Max-1) }); err != nil {
				t.Fatal(err)
			}
		}
		if n := k.crowd(t, db, func(tx *sql.Tx, i int) error { return random(tx, int(fence.Max)-2+i%2) }); n > 0 {
			t.Errorf("the database ended %d transactions", n)
		}
	})
}
