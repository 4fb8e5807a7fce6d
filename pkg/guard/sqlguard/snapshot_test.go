package sqlguard_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// An older holder whose token is known shares the row of the lock. The newer one
// waits for it, and must then read what it has left.
func TestANewerHolderThatWaitedReadsWhatTheOlderOneLeftAtEveryIsolationLevel(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for _, level := range levels {
			db, g := k.database(t)
			g.Isolation = level
			if err := k.write(t.Context(), db, g, 5, "100"); err != nil {
				t.Fatal(err)
			}
			in, out := make(chan bool), make(chan bool)
			older, newer := make(chan error, 1), make(chan error, 1)
			go func() {
				older <- g.Do(t.Context(), db, holding(5), "doc/1", func(tx *sqlguard.Tx) error {
					close(in)
					<-out
					return k.set(t.Context(), tx, 1, "150")
				})
			}()
			<-in
			go func() {
				newer <- g.Do(t.Context(), db, holding(6), "doc/1", func(tx *sqlguard.Tx) error {
					var read string
					if err := tx.QueryRowContext(t.Context(), "SELECT body FROM doc WHERE id = 1").Scan(&read); err != nil {
						return err
					}
					_, err := tx.ExecContext(t.Context(), k.marks.Replace("INSERT INTO doc (id, body) VALUES (2, $1)"), read)
					return err
				})
			}()
			k.awaitWaiter(t, db)
			close(out)
			if err := errors.Join(<-older, <-newer); err != nil {
				t.Errorf("%v: %v", level, err)
			}
			if read := column(t, db, "SELECT body FROM doc WHERE id = 2"); read != "150" {
				t.Errorf("%v: the newer holder read %s, want the 150 that the older one left", level, read)
			}
		}
	})
}

func TestATokenThatIsNewToASnapshotIsClaimedBeforeIt(t *testing.T) {
	db, g := postgres.database(t)
	for _, level := range levels[1:] {
		o := &sql.TxOptions{Isolation: level}
		check := func(token fence.Token) error {
			return postgres.do(t.Context(), db, o, func(tx *sql.Tx) error {
				return g.Check(t.Context(), tx, holding(token), "doc/1")
			})
		}
		token := fence.Token(10 * (1 + level))
		if err := check(token); !errors.Is(err, sqlguard.ErrUnclaimed) || fence.Refused(err) {
			t.Errorf("%v: got error %v, want ErrUnclaimed", level, err)
		}
		if err := g.Claim(t.Context(), db, holding(token), "doc/1"); err != nil {
			t.Fatal(err)
		}
		if err := check(token); err != nil {
			t.Errorf("%v: after the claim: %v", level, err)
		}
		if err := check(token - 1); !isStale(err, token-1, token) {
			t.Errorf("%v: got error %v, want that it is stale", level, err)
		}
	}
}
