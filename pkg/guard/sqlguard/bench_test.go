package sqlguard_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// BenchmarkTransaction makes transactions of three statements, with the guard
// and without it in turn. The ratio is that of the medians.
func BenchmarkTransaction(b *testing.B) {
	interpolated := mariaDB.with(func(c *connection) { c.mysql.InterpolateParams = true })
	interpolated.name += " interpolated"
	for _, k := range []kind{postgres, mariaDB, interpolated} {
		plain := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, k.marks.Replace("UPDATE doc SET body = $1 WHERE id = 1"), "text")
			return err
		}
		for form, first := range map[string]transaction{
			"table": func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
				if err := k.dialect.Check(ctx, tx, "shop/doc", token); err != nil {
					return err
				}
				return plain(ctx, tx)
			},
			"row": func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
				return k.dialect.Update(ctx, tx, document1, "shop/doc", token, k.marks.Replace("body = $1"), "text")
			},
		} {
			b.Run(k.name+"/"+form, func(b *testing.B) {
				db := k.guarded(b)
				exec(b, db, "CREATE TABLE ledger (entry INT PRIMARY KEY, body TEXT)")
				entry := 0
				timed := func(first func(*sql.Tx) error) time.Duration {
					start := time.Now()
					entry++
					if err := k.do(b.Context(), db, nil, func(tx *sql.Tx) error {
						if err := first(tx); err != nil {
							return err
						}
						if _, err := tx.Exec(k.marks.Replace("INSERT INTO ledger (entry, body) VALUES ($1, $2)"), entry, "text"); err != nil {
							return err
						}
						return tx.QueryRow(k.marks.Replace("SELECT body FROM doc WHERE id = $1"), 1).Scan(new(string))
					}); err != nil {
						b.Fatal(err)
					}
					return time.Since(start)
				}
				var with, without []time.Duration
				for b.Loop() {
					without = append(without, timed(func(tx *sql.Tx) error { return plain(b.Context(), tx) }))
					with = append(with, timed(func(tx *sql.Tx) error { return first(b.Context(), tx, fence.Token(entry)) }))
				}
				slices.Sort(with)
				slices.Sort(without)
				guarded, unguarded := with[len(with)/2], without[len(without)/2]
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(guarded.Microseconds()), "guarded-µs")
				b.ReportMetric(float64(unguarded.Microseconds()), "unguarded-µs")
				b.ReportMetric(float64(guarded)/float64(unguarded), "ratio")
			})
		}
	}
}
