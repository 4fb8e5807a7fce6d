package sqlguard_test

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

func TestAPoolOfConnectionsIsNoTransaction(t *testing.T) {
	if _, ok := any((*sql.DB)(nil)).(sqlguard.Tx); ok {
		t.Error("a check outside of a transaction compiles")
	}
	if _, ok := any((*sql.Tx)(nil)).(sqlguard.Tx); !ok {
		t.Error("a check inside of a transaction does not compile")
	}
}

func TestTheSchemaMayBeAppliedAgain(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.database(t)
		if err := k.dialect.Claim(t.Context(), db, "shop/doc", 5); err != nil {
			t.Fatal(err)
		}
		for _, s := range k.dialect.Schema() {
			exec(t, db, s)
		}
		if err := k.dialect.Claim(t.Context(), db, "shop/doc", 4); !isStale(err, 4, 5) {
			t.Errorf("got error %v, want that 4 is stale", err)
		}
	})
}

func TestAClaimShutsOlderHoldersOut(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.database(t)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 2 {
			if err := k.dialect.Claim(t.Context(), conn, "shop/doc", 6); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.dialect.Claim(t.Context(), db, "shop/doc", 5); !isStale(err, 5, 6) {
			t.Errorf("got error %v, want that 5 is stale", err)
		}
		if err := k.dialect.Claim(t.Context(), db, "shop/doc", 0); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("got error %v, want ErrInvalid", err)
		}
	})
}

func TestNamesStayTheSameInAnyCharacterSet(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name, way := range map[string]kind{
			"as usual": k,
			"in latin1": k.with(func(c *connection) {
				if c.mysql != nil {
					c.mysql.Params = map[string]string{"character_set_connection": "latin1"}
				}
			}),
			"in latin1, interpolated": k.with(func(c *connection) {
				if c.mysql != nil {
					c.mysql.InterpolateParams = true
					c.mysql.Params = map[string]string{"character_set_client": "latin1", "character_set_connection": "utf8mb4"}
				}
			}),
		} {
			t.Run(name, func(t *testing.T) {
				want := []string{"shop/caf\u00e9", "shop/cafe\u0301", "shop/CAFE\u0301", "shop/cafe", "shop/cafe ", "shop/日", "shop/本", "shop/🔒"}
				db := way.database(t)
				for i, lock := range want {
					if err := k.dialect.Claim(t.Context(), db, lock, fence.Token(100-i)); err != nil {
						t.Error(err)
					}
				}
				got := strings.Fields(strings.ToLower(column(t, db, k.hexLocks)))
				for i, lock := range want {
					want[i] = hex.EncodeToString([]byte(lock))
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	})
}

func TestNamesThatAreTooLongOrEmptyAreRefused(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.guarded(t)
		for n, wrong := range map[int]bool{0: true, 1: false, 576: false, 577: true} {
			name := strings.Repeat("n", n)
			claim := k.dialect.Claim(t.Context(), db, name, 1)
			update := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				return errors.Join(k.dialect.Update(t.Context(), tx, document1, name, 1, ""), errRollback)
			})
			bind := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				return k.dialect.Bind(t.Context(), tx, name, "shop/doc")
			})
			if errors.Is(claim, fence.ErrInvalid) != wrong || errors.Is(update, fence.ErrInvalid) != wrong || (bind != nil) != wrong {
				t.Errorf("%d bytes: got errors %v, %v and %v", n, claim, update, bind)
			}
		}
	})
}

var errRollback = errors.New("roll back")

func TestOneOfManyLocksGetsAResource(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.database(t)
		db.SetMaxIdleConns(8)
		for _, resource := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight"} {
			var errs [8]error
			var all sync.WaitGroup
			for i := range errs {
				lock := "shop/" + string(rune('a'+i))
				all.Go(func() {
					_, errs[i] = k.again(t.Context(), db, nil, func(tx *sql.Tx) error {
						if err := k.dialect.Check(t.Context(), tx, lock, 1); err != nil {
							return err
						}
						return k.dialect.Bind(t.Context(), tx, resource, lock)
					})
				})
			}
			all.Wait()
			won := ""
			for i, err := range errs {
				if err == nil {
					won += "shop/" + string(rune('a'+i))
				}
			}
			for _, err := range errs {
				var other *fence.OtherLockError
				if err != nil && (!errors.As(err, &other) || other.Bound != won || other.Resource != resource) {
					t.Errorf("got error %v, want that %s is bound to %s", err, resource, won)
				}
			}
		}
	})
}

func TestALockThatIsBoundMustBeDeclaredToo(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db := k.database(t)
		bind := func(lock string, declared ...string) error {
			return k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				return k.dialect.Bind(t.Context(), tx, "doc", lock, declared...)
			})
		}
		if err := bind("shop/a"); err != nil {
			t.Fatal(err)
		}
		if err := bind("shop/b", "shop/a", "shop/b"); err != nil {
			t.Error(err)
		}
		for _, declared := range [][]string{{"shop/b", "shop/c"}, {"shop/a", "shop/c"}, {}} {
			if err := bind("shop/b", declared...); !errors.Is(err, fence.ErrOtherLock) {
				t.Errorf("declared %q: got error %v, want ErrOtherLock", declared, err)
			}
		}
	})
}
