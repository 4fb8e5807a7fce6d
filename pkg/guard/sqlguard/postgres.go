package sqlguard

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Postgres is PostgreSQL from version 11 on, with any driver of database/sql. For
// those who use pgx without it there is [Guard.Statement].
var Postgres Dialect = postgres{}

type postgres struct{}

func (postgres) statements() string      { return postgresSchema }
func (postgres) quote() string           { return `"` }
func (postgres) lock() string            { return "lock" }
func (postgres) nameType() string        { return `TEXT COLLATE "C"` }
func (postgres) mark(n int) string       { return "$" + strconv.Itoa(n) }
func (d postgres) name(n int) string     { return d.mark(n) }
func (postgres) encode(name string) any  { return name }
func (postgres) now() string             { return "clock_timestamp()" }
func (postgres) instant(t time.Time) any { return t }
func (postgres) endsSilently() bool      { return false } // it fails all that follows

// Statement returns the whole check as one statement, for pgx and whatever else
// does not use database/sql:
//
//	query, arg, err := guard.Statement(h, "accounts/7")
//	…
//	_, err = tx.Exec(ctx, query, arg)
//	err = guard.Judge(ctx, h, err)
//
// It must be the first of the transaction. Only PostgreSQL has it.
func (g *Guard) Statement(h fence.Holding, resources ...string) (query, arg string, err error) {
	r, err := g.request(h, resources)
	if err != nil {
		return "", "", err
	}
	if g.Dialect != Postgres {
		return "", "", fmt.Errorf("sqlguard: MySQL takes more than one statement: use Check")
	}
	return "SELECT " + g.table("check_fence") + "($1::text::jsonb)", g.asked(r), nil
}

// Judge returns the error of [Guard.Statement] as [Guard.Check] would.
func (g *Guard) Judge(ctx context.Context, h fence.Holding, err error) error {
	return g.Observer.See(ctx, fence.Settled(refusal(request{holding: h}, err)))
}

// asked is a request in JSON.
func (g *Guard) asked(r request) string {
	holds := make(map[string]fence.Token)
	for lock, token := range r.holding.All() {
		holds[lock] = token
	}
	asked := map[string]any{
		"holds": holds, "resources": r.resources, "mark": r.key(),
		"idle": strconv.FormatInt(g.idle().Milliseconds(), 10) + "ms",
	}
	if len(g.Locks) > 0 {
		asked["locks"] = r.locks
	}
	text, _ := json.Marshal(asked) // which always can be
	return string(text)
}

func (g *Guard) idle() time.Duration {
	if g.Idle > 0 {
		return g.Idle
	}
	return 30 * time.Second
}

func (postgres) check(ctx context.Context, tx Transaction, g *Guard, r request) error {
	_, err := tx.ExecContext(ctx, "SELECT "+g.table("check_fence")+"($1::text::jsonb)", g.asked(r))
	return refusal(r, err)
}

// refusal reads what check_fence raises.
func refusal(r request, err error) error {
	code := state(err)
	if code != "PAWL1" && code != "PAWL2" {
		return err
	}
	text := err.Error()
	var said struct {
		Lock, Resource, Bound string
		Token, Seen           fence.Token
	}
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from || json.Unmarshal([]byte(text[from:to+1]), &said) != nil {
		return err
	}
	if code == "PAWL1" {
		resource := "table fence"
		if len(r.resources) > 0 {
			resource = r.resource()
		}
		return &fence.StaleError{Lock: said.Lock, Token: said.Token, Seen: said.Seen, Resource: resource}
	}
	bound := strings.ReplaceAll(said.Bound, "\n", ", ")
	return &fence.OtherLockError{Lock: r.holding.Lock, Bound: bound, Resource: said.Resource}
}

// confirm looks for a setting that is undone with the check, by the end of the
// transaction or a rollback to a savepoint from before.
func (postgres) confirm(ctx context.Context, tx Transaction, r request) error {
	var checked bool
	err := tx.QueryRowContext(ctx,
		"SELECT COALESCE(strpos(current_setting('pawl.checked', true), $1), 0) > 0", r.key()).Scan(&checked)
	if err == nil && !checked {
		return ErrEnded
	}
	return err
}

func (postgres) prepare(context.Context, *sql.Conn, *Guard) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}
