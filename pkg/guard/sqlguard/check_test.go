package sqlguard_test

import (
	"cmp"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

func TestATransactionConfirmsItsCheckBeforeTheCommit(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name, c := range map[string]struct {
			before, after string
			want          error
		}{
			"nothing happens":                  {"", "", nil},
			"a savepoint of its own":           {"", "SAVEPOINT a", nil},
			"it is taken back by a savepoint":  {"SAVEPOINT a", "ROLLBACK TO SAVEPOINT a", sqlguard.ErrEnded},
			"the transaction is over":          {"", "COMMIT", sqlguard.ErrEnded},
			"the transaction is another":       {"", "COMMIT AND CHAIN", sqlguard.ErrEnded},
			"the transaction is a new attempt": {"", "ROLLBACK AND CHAIN", sqlguard.ErrEnded},
		} {
			db, g := k.database(t)
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if c.before != "" {
				exec(t, tx, c.before)
			}
			if err := g.Check(t.Context(), tx, holding(5), "doc/1"); err != nil {
				t.Fatal(err)
			}
			if c.after != "" {
				exec(t, tx, c.after)
			}
			if err := g.Confirm(t.Context(), tx, holding(5), "doc/1"); !errors.Is(err, c.want) {
				t.Errorf("%s: got error %v, want %v", name, err, c.want)
			}
			_ = tx.Rollback()
		}
		db, g := k.database(t)
		if err := k.do(t.Context(), db, nil, func(tx *sql.Tx) error {
			if err := g.Check(t.Context(), tx, holding(5), "doc/1"); err != nil {
				t.Fatal(err)
			}
			return g.Confirm(t.Context(), tx, holding(6), "doc/1")
		}); !errors.Is(err, sqlguard.ErrEnded) {
			t.Errorf("a check of another token: got error %v, want ErrEnded", err)
		}
	})
}

func TestAStaleCheckThatIsPassedOverCannotCommit(t *testing.T) {
	db, g := postgres.database(t)
	if err := g.Claim(t.Context(), db, holding(6), "doc/1"); err != nil {
		t.Fatal(err)
	}
	for _, h := range []fence.Holding{holding(5), {Lock: "shop/other", Token: 9}} {
		err := postgres.do(t.Context(), db, nil, func(tx *sql.Tx) error {
			if err := g.Check(t.Context(), tx, h, "doc/1"); !fence.Refused(err) {
				t.Errorf("got error %v, want a refusal", err)
			}
			_, _ = tx.Exec("UPDATE doc SET body = 'late'")
			return nil
		})
		if got := body(t, db); err == nil || got != "" {
			t.Errorf("left %q with error %v", got, err)
		}
	}
}

// Those who use pgx itself have the check as one statement.
func TestPgxHasTheCheckAsOneStatement(t *testing.T) {
	dsn := postgres.forTest(t)
	g := postgres.guard(t, nil)
	postgres.create(t, postgres.open(t, dsn), g)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	write := func(h fence.Holding, resources ...string) error {
		return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			query, arg, err := g.Statement(h, resources...)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(t.Context(), query, arg); err != nil {
				return g.Judge(t.Context(), h, err)
			}
			_, err = tx.CopyFrom(t.Context(), pgx.Identifier{"doc"}, []string{"id", "body"}, pgx.CopyFromRows([][]any{{h.Token, "copied"}}))
			return err
		})
	}
	if err := write(holding(6), "doc/1", "doc/2"); err != nil {
		t.Fatal(err)
	}
	if err := write(holding(5), "doc/1"); !isStale(err, 5, 6) {
		t.Errorf("got error %v, want that 5 is stale", err)
	}
	var other *fence.OtherLockError
	if err := write(fence.Holding{Lock: "shop/other", Token: 9}, "doc/2"); !errors.As(err, &other) || other.Bound != lock || other.Resource != "doc/2" {
		t.Errorf("got error %v, want that doc/2 has another lock", err)
	}
	if err := write(holding(0), "doc/1"); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
	if _, _, err := (&sqlguard.Guard{Dialect: sqlguard.MySQL}).Statement(holding(5), "doc/1"); err == nil {
		t.Error("MySQL has it too")
	}
	var all string
	if err := conn.QueryRow(t.Context(), "SELECT string_agg(id || body, ' ') FROM doc").Scan(&all); err != nil || all != "6copied" {
		t.Errorf("got %q, error %v", all, err)
	}
}

// As README has it for other languages.
func TestTheCheckWorksByHand(t *testing.T) {
	db, g := postgres.database(t)
	exec(t, db, `SELECT pawl.check_fence('{"holds": {"shop/doc": 1795999458837}, "resources": ["doc/1"]}')`)
	if err := g.Claim(t.Context(), db, holding(1795999458836), "doc/1"); !isStale(err, 1795999458836, 1795999458837) {
		t.Errorf("got error %v, want that it is stale", err)
	}
	for request, code := range map[string]string{
		`{"holds": {"shop/doc": 5}, "resources": ["doc/1"]}`:                          "PAWL1",
		`{"holds": {"shop/other": 5}, "resources": ["doc/1"]}`:                        "PAWL2",
		`{"holds": {"shop/other": 5}, "locks": ["shop/doc"], "resources": ["doc/2"]}`: "PAWL2",
		`{}`:                                     "PAWL3",
		`{"resources": ["doc/1"]}`:               "PAWL3",
		`{"holds": {"shop/doc": 1795999458837}}`: "PAWL3",
		`{"holds": {}, "resources": ["doc/1"]}`:  "PAWL3",
		`{"holds": {"shop/doc": 0}, "resources": ["doc/1"]}`:                                        "PAWL3",
		`{"holds": {"shop/doc": 1000000000000000}, "resources": ["doc/1"]}`:                         "PAWL3",
		`{"holds": {"": 1}, "resources": ["doc/1"]}`:                                                "PAWL3",
		`{"holds": {"a\nb": 1}, "resources": ["doc/3"]}`:                                            "PAWL3",
		`{"holds": {"a\u0085b": 1}, "resources": ["doc/3"]}`:                                        "PAWL3",
		`{"holds": {"shop/doc": 1795999458837}, "resources": ["` + strings.Repeat("r", 577) + `"]}`: "PAWL3",
	} {
		var said interface{ SQLState() string }
		if _, err := db.Exec("SELECT pawl.check_fence($1::text::jsonb)", request); !errors.As(err, &said) || said.SQLState() != code {
			t.Errorf("%.80s: got error %v, want %s", request, err, code)
		}
	}
}

// As README tells who leaves for a source whose tokens are smaller.
func TestASourceOfSmallerTokensTakesOver(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		db, g := k.database(t)
		if err := g.Claim(t.Context(), db, holding(1_796_281_795_145), "doc/1"); err != nil {
			t.Fatal(err)
		}
		const revision = 8412 // of etcd
		if err := g.Claim(t.Context(), db, holding(revision), "doc/1"); !isStale(err, revision, 1_796_281_795_145) {
			t.Errorf("got error %v, want that it is stale", err)
		}
		var newest fence.Token
		if err := db.QueryRow("SELECT MAX(token) FROM " + cmp.Or(g.Schema, "pawl") + ".fence").Scan(&newest); err != nil {
			t.Fatal(err)
		}
		if err := g.Claim(t.Context(), db, holding(newest+revision), "doc/1"); err != nil {
			t.Errorf("with an offset: %v", err)
		}
		other := fence.Holding{Lock: "etcd/doc", Token: revision}
		if err := g.Reset(t.Context(), db, other, "doc/1"); err != nil {
			t.Fatal(err)
		}
		if err := g.Claim(t.Context(), db, other, "doc/1"); err != nil {
			t.Errorf("by a new name: %v", err)
		}
	})
}
