// Command ledger tells how a paused worker corrupts a ledger in PostgreSQL, and
// how a guard in the same transaction prevents it: make story-ledger.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/stories"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

func main() {
	if err := stories.Main(context.Background(), story, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const envDSN = "STORY_DSN"

var (
	story = stories.Story{Lock: "bank/ledger", Work: book}
	guard = &sqlguard.Guard{Dialect: sqlguard.Postgres, Observer: stories.Refused}
)

// account is the resource.
const account = "accounts/1"

// amounts are what each worker books.
var amounts = map[string]int{"worker-1": 10, "worker-2": 25}

// book reads the balance, adds an amount, and writes it: the lock is there so
// that nobody else does the same in between.
func book(ctx context.Context, w stories.Worker, pause func()) error {
	db, err := sql.Open("pgx", os.Getenv(envDSN))
	if err != nil {
		return err
	}
	defer db.Close()
	if w.Guarded {
		if err := guard.Claim(ctx, db, w.Held.Holding(), account); err != nil {
			return err
		}
	}
	var balance int
	if err := db.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = 1`).Scan(&balance); err != nil {
		return err
	}
	w.Log("reads a balance of %d and adds %d", balance, amounts[w.Name])
	balance += amounts[w.Name]
	if err := w.Held.Err(); err != nil {
		return err
	}
	pause() // it has just looked, and all was well

	const update = `UPDATE account SET balance = $1 WHERE id = 1`
	if w.Guarded {
		err = guard.Do(ctx, db, w.Held.Holding(), account, func(tx *sqlguard.Tx) error {
			_, err := tx.ExecContext(ctx, update, balance)
			return err
		})
	} else {
		_, err = db.ExecContext(ctx, update, balance)
	}
	if err != nil {
		return err
	}
	w.Log("writes %d", balance)
	return nil
}

// open starts PostgreSQL. The balance is 100.
func open(ctx context.Context) (*stories.Stage, func() error, error) {
	if err := localtest.Install(ctx, os.Stderr, "postgres"); err != nil {
		return nil, nil, err
	}
	server, err := localtest.StartPostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	return stage(server.DSN), server.Close, nil
}

func stage(dsn string) *stories.Stage {
	do := func(ctx context.Context, f func(*sql.DB) error) error {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		return f(db)
	}
	return &stories.Stage{
		Story: story,
		Env:   []string{envDSN + "=" + dsn},
		Reset: func(ctx context.Context) error {
			return do(ctx, func(db *sql.DB) error {
				for _, statement := range append(guard.Statements(),
					`DROP TABLE IF EXISTS account`,
					`CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)`,
					`INSERT INTO account VALUES (1, 100)`,
				) {
					if _, err := db.ExecContext(ctx, statement); err != nil {
						return err
					}
				}
				return nil
			})
		},
		// What worker-2 has booked must be in it. Worker-1 was told that its own
		// was not, or it was not told, and it is lost.
		Outcome: func(ctx context.Context) (text string, intact bool, err error) {
			err = do(ctx, func(db *sql.DB) error {
				var balance int
				err := db.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = 1`).Scan(&balance)
				intact = balance == 125
				text = fmt.Sprintf("the ledger says %d: the 25 that worker-2 has booked are in it", balance)
				if !intact {
					text = fmt.Sprintf("lost update: the ledger says %d, without the 25 that worker-2 has booked", balance)
				}
				return err
			})
			return text, intact, err
		},
	}
}
