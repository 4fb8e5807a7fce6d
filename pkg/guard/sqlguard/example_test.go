package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// bank guards what is in one database. Its Statements are applied once, by
// whatever applies migrations.
var bank = &sqlguard.Guard{Dialect: sqlguard.Postgres}

// book adds an amount to the ledger, as the holder of the lock on the account.
func book(ctx context.Context, db *sql.DB, h fence.Holding, amount int) error {
	return bank.Do(ctx, db, h, "accounts/7", func(tx *sqlguard.Tx) error {
		var balance int
		if err := tx.QueryRowContext(ctx, `SELECT COALESCE(SUM(amount), 0) FROM ledger`).Scan(&balance); err != nil {
			return err
		}
		if balance+amount < 0 {
			return errors.New("not enough money")
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO ledger (amount) VALUES ($1)`, amount)
		return err
	})
}

// A holder that was replaced is told so, and stops.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("POSTGRES_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	for _, h := range []fence.Holding{ // lock.Held.Holding, or fence.HoldingFrom of the context of lock.Client.Do
		{Lock: "bank/accounts/7", Token: 33},
		{Lock: "bank/accounts/7", Token: 34},
		{Lock: "bank/accounts/7", Token: 33},
	} {
		switch err := book(ctx, db, h, 100); {
		case errors.Is(err, fence.ErrStale):
			fmt.Println("stop:", err)
		case errors.Is(err, fence.ErrNotApplied):
			fmt.Println("not booked:", err)
		case err != nil:
			fmt.Println("booked or not:", err)
		default:
			fmt.Println("booked by", h.Token)
		}
	}
	// booked by 33
	// booked by 34
	// stop: stale fencing token: accounts/7 has seen 34 of "bank/accounts/7", and was sent 33
}

// With pgx itself, the check is the first statement of a transaction of its own.
func ExampleGuard_Statement() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("POSTGRES_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)

	h := fence.Holding{Lock: "bank/accounts/7", Token: 33}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		query, arg, err := bank.Statement(h, "accounts/7")
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, query, arg); err != nil {
			return bank.Judge(ctx, h, err)
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"ledger"}, []string{"amount"}, pgx.CopyFromRows([][]any{{1}, {2}}))
		return err
	})
	fmt.Println(errors.Is(err, fence.ErrStale))
	// true
}

// Whatever only ever grows from one holder to the next is a token: here the
// revision at which etcd granted its own Mutex. A lock takes all its tokens from
// one source.
func ExampleGuard_Claim_etcd() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("POSTGRES_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	var revision int64 = 8_412 // concurrency.Mutex: m.Header().Revision
	h := fence.Holding{Lock: "bank/accounts/8", Token: fence.Token(revision)}
	if err := bank.Claim(ctx, db, h, "accounts/8"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bank.Seen(ctx, db, "accounts/8"))
	// map[bank/accounts/8:8412] <nil>
}

// The leader of a Raft group has the index of the entry that made it the leader.
// Here the row itself carries it.
func ExampleGuard_Update_raft() {
	ctx := context.Background()
	db, err := sql.Open("mysql", os.Getenv("MYSQL_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback() // does nothing after a commit

	var index uint64 = 77 // of the entry; above fence.Max it is refused
	cluster := &sqlguard.Guard{Dialect: sqlguard.MySQL}
	h := fence.Holding{Lock: "cluster/shards/3", Token: fence.Token(index)}
	shard := sqlguard.Row{Table: "shards", Key: map[string]any{"id": 3}}
	if err := cluster.Update(ctx, tx, h, shard, "owner = ?", "node-2"); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
}

// The examples need servers, so it is a test that runs them.
func TestTheExamplesDoWhatTheySay(t *testing.T) {
	pg, my := localtest.PostgresForTest(t), localtest.MariaDBForTest(t)
	t.Setenv("POSTGRES_DSN", pg)
	t.Setenv("MYSQL_DSN", my)
	ledger, shards := postgres.open(t, pg), mariaDB.open(t, my)
	postgres.create(t, ledger, bank)
	exec(t, ledger, "CREATE TABLE ledger (entry SERIAL PRIMARY KEY, amount INT)")
	exec(t, shards, "CREATE TABLE shards (id INT PRIMARY KEY, owner TEXT)")
	exec(t, shards, "INSERT INTO shards (id) VALUES (3)")
	exec(t, shards, (&sqlguard.Guard{Dialect: sqlguard.MySQL}).Columns("shards"))

	for want, run := range map[string]func(){
		"booked by 33\nbooked by 34\nstop: stale fencing token: accounts/7 has seen 34 of \"bank/accounts/7\", and was sent 33\n": Example,
		"map[bank/accounts/8:8412] <nil>\n": ExampleGuard_Claim_etcd,
		"":                                  ExampleGuard_Update_raft,
	} {
		if got := printed(t, run); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
	if got := printed(t, ExampleGuard_Statement); got != "true\n" {
		t.Errorf("printed %q", got)
	}
	if got := column(t, ledger, "SELECT amount FROM ledger"); got != "100 100" {
		t.Errorf("booked %q, want 100 twice", got)
	}
	if got := column(t, shards, "SELECT concat(owner, '/', fence_lock, '/', fence_token) FROM shards"); got != "node-2/cluster/shards/3/77" {
		t.Errorf("got %s", got)
	}
}

func printed(t *testing.T, run func()) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	run()
	os.Stdout = stdout
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
