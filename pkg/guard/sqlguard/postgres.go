package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Postgres guards PostgreSQL.
var Postgres = Dialect{
	schema:        postgresSchema,
	columns:       postgresColumns,
	mark:          func(n int) string { return "$" + strconv.Itoa(n) },
	name:          func(mark string) string { return mark },
	encode:        func(name string) string { return name },
	countsMatches: true,
	see:           postgresSee,
	bind:          postgresBind,
}

func postgresSee(ctx context.Context, tx Tx, lock string, token fence.Token) (seen fence.Token, err error) {
	err = tx.QueryRowContext(ctx, `INSERT INTO fence AS f (lock, token) VALUES ($1, $2)
		ON CONFLICT (lock) DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token) RETURNING token`,
		lock, int64(token)).Scan(&seen)
	return seen, err
}

func postgresBind(ctx context.Context, tx Tx, resource, lock string) (bound string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT lock FROM fence_binding WHERE resource = $1`, resource).Scan(&bound)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, `INSERT INTO fence_binding AS b (resource, lock) VALUES ($1, $2)
			ON CONFLICT (resource) DO UPDATE SET lock = b.lock RETURNING lock`, resource, lock).Scan(&bound)
	}
	return bound, err
}
