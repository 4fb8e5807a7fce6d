package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Querier reads, such as a [*sql.DB] or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Seen returns what is known of a resource: the largest token of each lock that it
// is bound to, zero where none was seen. Of a resource that was never guarded it
// is empty.
func (g *Guard) Seen(ctx context.Context, q Querier, resource string) (map[string]fence.Token, error) {
	seen, err := g.seen(ctx, q, resource)
	if err != nil {
		return nil, fmt.Errorf("sqlguard: seen %q: %w", resource, err)
	}
	return seen, nil
}

func (g *Guard) seen(ctx context.Context, q Querier, resource string) (map[string]fence.Token, error) {
	d := g.Dialect
	bound, err := strs(q.QueryContext(ctx,
		"SELECT locks FROM "+g.table("binding")+" WHERE resource = "+d.name(1), d.encode(resource)))
	if err != nil || len(bound) == 0 {
		return nil, err
	}
	seen := unseen(bound[0])
	for lock := range seen {
		rows, err := q.QueryContext(ctx,
			"SELECT token FROM "+g.table("fence")+" WHERE "+d.lock()+" = "+d.name(1), d.encode(lock))
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var token int64
			err = errors.Join(err, rows.Scan(&token))
			seen[lock] = fence.Token(token)
		}
		if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

func strs(rows *sql.Rows, err error) (all []string, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// Reset has a resource, and with it all that its locks guard, take tokens from
// those of the holding on, and binds it to the declared locks, whatever was seen
// before. It repairs what a wrong token has shut, one that no grant had. It is for
// an operator: a holder that was replaced is accepted again if its token is not
// below the new one, so take that of a grant made now.
func (g *Guard) Reset(ctx context.Context, db DB, h fence.Holding, resource string) error {
	r, err := g.request(h, []string{resource})
	if err == nil {
		err = g.maintain(ctx, db, func(tx *sql.Tx) error { return g.reset(ctx, tx, r) })
	}
	for _, lock := range r.locks {
		g.known.forget(lock)
	}
	return g.judged(ctx, "reset", r, err)
}

func (g *Guard) reset(ctx context.Context, tx *sql.Tx, r request) error {
	d, fenceTable, binding := g.Dialect, g.table("fence"), g.table("binding")
	for lock, token := range r.holding.All() {
		_, err := tx.ExecContext(ctx, "DELETE FROM "+fenceTable+" WHERE "+d.lock()+" = "+d.name(1), d.encode(lock))
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+fenceTable+" ("+d.lock()+", token, since) VALUES ("+
			d.name(1)+", "+d.mark(2)+", "+d.now()+")", d.encode(lock), int64(token)); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM "+binding+" WHERE resource = "+d.name(1), d.encode(r.resource()))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+binding+" (resource, locks) VALUES ("+d.name(1)+", "+d.name(2)+")",
		d.encode(r.resource()), d.encode(strings.Join(r.locks, "\n")))
	return err
}

// Prune forgets the locks whose last new token was seen before a time, and the
// resources that are bound to no others, and returns how many locks these were. It
// is safe if no holder that was replaced before that time is still to write: a
// month is a good choice, where no process sleeps for longer.
func (g *Guard) Prune(ctx context.Context, db DB, before time.Time) (locks int, err error) {
	if g.Dialect == nil {
		return 0, errors.New("sqlguard: Guard.Dialect is missing")
	}
	err = g.maintain(ctx, db, func(tx *sql.Tx) error {
		locks, err = g.prune(ctx, tx, before)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("sqlguard: prune: %w", err)
	}
	return locks, nil
}

func (g *Guard) prune(ctx context.Context, tx *sql.Tx, before time.Time) (int, error) {
	d := g.Dialect
	// Who checks one of these meanwhile waits, and then finds nothing known.
	old, err := strs(tx.QueryContext(ctx, "SELECT "+d.lock()+" FROM "+g.table("fence")+" WHERE since < "+d.mark(1)+
		" ORDER BY 1 FOR UPDATE", d.instant(before)))
	if err != nil {
		return 0, err
	}
	for _, lock := range old {
		_, err := tx.ExecContext(ctx, "DELETE FROM "+g.table("fence")+" WHERE "+d.lock()+" = "+d.name(1), d.encode(lock))
		if err != nil {
			return 0, err
		}
	}
	bindings, err := strs(tx.QueryContext(ctx, "SELECT DISTINCT locks FROM "+g.table("binding")))
	if err != nil {
		return 0, err
	}
	for _, locks := range bindings {
		known := func(lock string) bool { return !slices.Contains(old, lock) }
		if slices.ContainsFunc(strings.Split(locks, "\n"), known) {
			continue
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM "+g.table("binding")+" WHERE locks = "+d.name(1), d.encode(locks))
		if err != nil {
			return 0, err
		}
	}
	return len(old), nil
}

// maintain makes one transaction that no holder's token is needed for.
func (g *Guard) maintain(ctx context.Context, db DB, work func(*sql.Tx) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() // to the pool
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}
