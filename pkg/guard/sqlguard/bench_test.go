package sqlguard_test

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// BenchmarkTransaction makes transactions of three statements, without a guard
// and in each of its forms, in turn. The ratios are those of the medians.
func BenchmarkTransaction(b *testing.B) {
	interpolated := mariaDB.with(func(c *connection) { c.mysql.InterpolateParams = true })
	interpolated.name += " interpolated"
	for _, k := range []kind{postgres, mariaDB, interpolated} {
		b.Run(k.name, func(b *testing.B) {
			ctx := b.Context()
			db, g := k.database(b)
			exec(b, db, "CREATE TABLE ledger (entry INT PRIMARY KEY, body TEXT)")
			entry := 0
			rest := func(tx interface {
				ExecContext(context.Context, string, ...any) (sql.Result, error)
				QueryRowContext(context.Context, string, ...any) *sql.Row
			}) error {
				entry++
				if _, err := tx.ExecContext(ctx, k.marks.Replace("INSERT INTO ledger (entry, body) VALUES ($1, $2)"), entry, "text"); err != nil {
					return err
				}
				return tx.QueryRowContext(ctx, k.marks.Replace("SELECT body FROM doc WHERE id = $1"), 1).Scan(new(string))
			}
			const update = "UPDATE doc SET body = 'text' WHERE id = 1"
			h := holding(5)
			ways := []struct {
				name string
				do   func() error
			}{
				{"plain", func() error {
					return k.do(ctx, db, nil, func(tx *sql.Tx) error {
						if _, err := tx.ExecContext(ctx, update); err != nil {
							return err
						}
						return rest(tx)
					})
				}},
				{"do", func() error {
					return g.Do(ctx, db, h, "doc/1", func(tx *sqlguard.Tx) error {
						if _, err := tx.ExecContext(ctx, update); err != nil {
							return err
						}
						return rest(tx)
					})
				}},
				{"check", func() error {
					return k.do(ctx, db, nil, func(tx *sql.Tx) error {
						if err := g.Check(ctx, tx, h, "doc/1"); err != nil {
							return err
						}
						if _, err := tx.ExecContext(ctx, update); err != nil {
							return err
						}
						return rest(tx)
					})
				}},
				{"row", func() error {
					return k.do(ctx, db, nil, func(tx *sql.Tx) error {
						if err := g.Update(ctx, tx, h, document1, "body = 'text'"); err != nil {
							return err
						}
						return rest(tx)
					})
				}},
			}
			took := make([][]time.Duration, len(ways))
			for b.Loop() {
				for i, way := range ways {
					start := time.Now()
					if err := way.do(); err != nil {
						b.Fatal(way.name, err)
					}
					took[i] = append(took[i], time.Since(start))
				}
			}
			b.ReportMetric(0, "ns/op")
			plain := median(took[0])
			b.ReportMetric(float64(plain.Microseconds()), "plain-µs")
			for i, way := range ways[1:] {
				b.ReportMetric(float64(median(took[i+1]))/float64(plain), way.name+"/plain")
			}
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkSideBySide has one holder make 8 transactions at a time, each of which
// works for 10 ms, without a guard and with it, in turn.
func BenchmarkSideBySide(b *testing.B) {
	for _, k := range []kind{postgres, mariaDB} {
		b.Run(k.name, func(b *testing.B) {
			db, g := k.database(b)
			db.SetMaxIdleConns(8)
			work := func(query func(context.Context, string, ...any) *sql.Row) error {
				seconds := "SELECT 1 FROM (SELECT pg_sleep(0.01)) AS s"
				if k.name != postgres.name {
					seconds = "SELECT SLEEP(0.01)"
				}
				return query(b.Context(), seconds).Scan(new(int))
			}
			eight := func(do func() error) time.Duration {
				start := time.Now()
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for range 5 {
							if err := do(); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				return time.Since(start)
			}
			var plain, guarded []time.Duration
			for b.Loop() {
				plain = append(plain, eight(func() error {
					return k.do(b.Context(), db, nil, func(tx *sql.Tx) error { return work(tx.QueryRowContext) })
				}))
				guarded = append(guarded, eight(func() error {
					return g.Do(b.Context(), db, fence.Holding{Lock: lock, Token: 5}, "doc/1", func(tx *sqlguard.Tx) error {
						return work(tx.QueryRowContext)
					})
				}))
			}
			p, q := median(plain), median(guarded)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(p.Milliseconds()), "plain-ms")
			b.ReportMetric(float64(q)/float64(p), "guarded/plain")
		})
	}
}
