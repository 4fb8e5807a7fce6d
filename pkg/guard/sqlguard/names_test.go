package sqlguard_test

import (
	"crypto/rand"
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
	if _, ok := any((*sql.DB)(nil)).(sqlguard.Transaction); ok {
		t.Error("a check outside of a transaction compiles")
	}
	if _, ok := any((*sql.Tx)(nil)).(sqlguard.Transaction); !ok {
		t.Error("a check inside of a transaction does not compile")
	}
}

func TestTheSchemaMayBeAppliedAgain(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		if err := g.Claim(t.Context(), db, holding(5), "doc/1"); err != nil {
			t.Fatal(err)
		}
		for _, s := range g.Statements() {
			exec(t, db, s)
		}
		if err := g.Claim(t.Context(), db, holding(4), "doc/1"); !isStale(err, 4, 5) {
			t.Errorf("got error %v, want that 4 is stale", err)
		}
	})
}

func TestAClaimShutsOlderHoldersOut(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		for range 2 {
			if err := g.Claim(t.Context(), db, holding(6), "doc/1"); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Claim(t.Context(), db, holding(5), "doc/1"); !isStale(err, 5, 6) {
			t.Errorf("got error %v, want that 5 is stale", err)
		}
		if err := g.Claim(t.Context(), db, holding(0), "doc/1"); !errors.Is(err, fence.ErrInvalid) {
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
				db, g := way.database(t)
				for i, lock := range want {
					if err := g.Claim(t.Context(), db, fence.Holding{Lock: lock, Token: fence.Token(100 - i)}, "doc/"+lock); err != nil {
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

func TestNamesOfLocksAndResourcesKeepToOneRule(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		for name, valid := range map[string]bool{
			"": false, "n": true, "a/\x00": false, "a/\xff": false, strings.Repeat("n", 576): true, strings.Repeat("n", 577): false,
		} {
			h := fence.Holding{Lock: name, Token: 1}
			claim := g.Claim(t.Context(), db, h, "resource of "+hex.EncodeToString([]byte(name))[:min(2*len(name), 100)])
			update := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
				return errors.Join(g.Update(t.Context(), tx, h, document1, ""), errRollback)
			})
			bind := g.Claim(t.Context(), db, holding(1), name)
			if errors.Is(claim, fence.ErrInvalid) == valid || errors.Is(update, fence.ErrInvalid) == valid || errors.Is(bind, fence.ErrInvalid) == valid {
				t.Errorf("%.10q: got errors %v, %v and %v", name, claim, update, bind)
			}
		}
		if err := g.Check(t.Context(), new(sql.Tx), holding(5)); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("without a resource: got error %v", err)
		}
		if err := new(sqlguard.Guard).Claim(t.Context(), db, holding(5), "doc/1"); err == nil {
			t.Error("a guard of no dialect claims")
		}
	})
}

var errRollback = errors.New("roll back")

func TestOneOfManyLocksGetsAResource(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		db.SetMaxIdleConns(8)
		for _, resource := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight"} {
			var errs [8]error
			var all sync.WaitGroup
			for i := range errs {
				lock := "shop/" + string(rune('a'+i))
				all.Go(func() {
					_, errs[i] = k.again(t.Context(), db, nil, func(tx *sql.Tx) error {
						return g.Check(t.Context(), tx, fence.Holding{Lock: lock, Token: 1}, resource)
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

// Another search path, another default database, a temporary table.
func TestWhereASessionLooksForTablesDoesNotMatter(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		dsn := k.forTest(t)
		db := k.open(t, dsn)
		g := k.guard(t, db)
		k.create(t, db, g)
		if err := g.Claim(t.Context(), db, holding(6), "doc/1"); err != nil {
			t.Fatal(err)
		}
		space := "elsewhere_" + strings.ToLower(rand.Text())
		exec(t, db, "CREATE "+k.space+" "+space)
		t.Cleanup(func() { exec(t, db, "DROP "+k.space+" "+space+k.cascade) })
		there := k.with(func(c *connection) { k.enter(c, space) }).open(t, dsn)
		there.SetMaxOpenConns(1)
		exec(t, there, "CREATE TEMPORARY TABLE fence (lock_ INT)")
		if err := g.Claim(t.Context(), there, holding(5), "doc/1"); !isStale(err, 5, 6) {
			t.Errorf("got error %v, want that 5 is stale", err)
		}
	})
}
