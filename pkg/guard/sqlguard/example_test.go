package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"os"
	"testing"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// addEntry books an amount, as the holder of the lock on the account.
func addEntry(ctx context.Context, db *sql.DB, token fence.Token, amount int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := sqlguard.Postgres.Check(ctx, tx, "bank/accounts/7", token); err != nil {
		return err
	}
	var balance int
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(SUM(amount), 0) FROM ledger`).Scan(&balance); err != nil {
		return err
	}
	if balance+amount < 0 {
		return errors.New("not enough money")
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO ledger (amount) VALUES ($1)`, amount); err != nil {
		return err
	}
	return tx.Commit()
}

// The schema is applied once, by whatever applies migrations.
func Example_ledger() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("POSTGRES_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	token := fence.Token(34) // what the lock was granted with
	switch err := addEntry(ctx, db, token, 100); {
	case errors.Is(err, fence.ErrStale):
		log.Print("the lock has another holder, whose work this must not touch: ", err)
	case err != nil:
		log.Print("not known to be booked: ", err)
	}
}

// Whatever only ever grows from one holder to the next is a token: here the
// revision at which etcd granted its own Mutex. A lock takes all its tokens from
// one source.
func ExampleDialect_Claim_etcd() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("POSTGRES_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	var revision int64 = 8_412 // concurrency.Mutex: m.Header().Revision
	if err := sqlguard.Postgres.Claim(ctx, db, "bank/accounts/7", fence.Token(revision)); err != nil {
		log.Fatal(err)
	}
}

// The leader of a Raft group has the index of the entry that made it the leader.
func ExampleDialect_Update_raft() {
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
	shard := sqlguard.Row{Table: "shards", Key: "id", ID: 3}
	if err := sqlguard.MySQL.Update(ctx, tx, shard, "cluster/shards/3", fence.Token(index), "owner = ?", "node-2"); err != nil {
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
	postgres.create(t, ledger)
	exec(t, ledger, "CREATE TABLE ledger (entry SERIAL PRIMARY KEY, amount INT)")
	exec(t, shards, "CREATE TABLE shards (id INT PRIMARY KEY, owner TEXT)")
	exec(t, shards, "INSERT INTO shards (id) VALUES (3)")
	exec(t, shards, sqlguard.MySQL.Columns("shards"))

	Example_ledger()
	ExampleDialect_Claim_etcd()
	ExampleDialect_Update_raft()
	if got := column(t, ledger, "SELECT amount FROM ledger"); got != "100" {
		t.Errorf("booked %q, want 100", got)
	}
	if err := addEntry(t.Context(), ledger, 34, 100); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want ErrStale", err)
	}
	if got := column(t, shards, "SELECT concat(owner, '/', fence_lock, '/', fence_token) FROM shards"); got != "node-2/cluster/shards/3/77" {
		t.Errorf("got %s", got)
	}
}
