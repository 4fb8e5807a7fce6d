package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Do makes a transaction of the holder that may change one resource: it begins,
// checks as [Guard.Check] does, has work do the rest, and commits only if the
// transaction is still the one that checked. When the database ends it for
// another's sake, by a deadlock, a lock timeout or a serialization failure, all of
// it is repeated, work included, until ctx ends.
//
// Work reads and writes through tx only; an error of it rolls back and is returned
// as it is. A refusal of the guard is a [fence.StaleError] or a
// [fence.OtherLockError]; nothing was changed. The same goes for an error that
// matches [fence.ErrNotApplied]. After [ErrEnded], what a statement committed by
// itself is there, and nothing of what followed. After any other error, such as
// that of a connection that broke at the commit, the outcome is unknown.
func (g *Guard) Do(ctx context.Context, db DB, h fence.Holding, resource string, work func(tx *Tx) error) error {
	r, err := g.request(h, []string{resource})
	for attempt := 0; err == nil; attempt++ {
		if err = g.once(ctx, db, r, work); !repeatable(err) {
			break
		}
		wait := time.NewTimer(rand.N(min(5*time.Millisecond<<min(attempt, 6), 200*time.Millisecond)))
		select {
		case <-ctx.Done():
			err = fmt.Errorf("%w: %w: %w", fence.ErrNotApplied, context.Cause(ctx), err)
		case <-wait.C:
			err = nil
		}
		wait.Stop()
	}
	var own workError
	if errors.As(err, &own) {
		return own.error
	}
	return g.judged(ctx, "do", r, err)
}

// A workError is what the caller's own part returned.
type workError struct{ error }

func (e workError) Unwrap() error { return e.error }

// once makes one attempt. Its error is repeatable if nothing was changed and the
// database may let another pass.
func (g *Guard) once(ctx context.Context, db DB, r request, work func(tx *Tx) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return notApplied(err)
	}
	defer conn.Close() // to the pool
	undo, err := g.Dialect.prepare(ctx, conn, g)
	if err != nil {
		return notApplied(err)
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if undo(late) != nil { // nobody else may get a session like this
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: g.Isolation})
	if err != nil {
		return notApplied(err)
	}
	defer tx.Rollback() // does nothing after a commit
	guarded := &Tx{tx: tx, g: g, r: r, sure: !g.Dialect.endsSilently()}
	if err := g.Dialect.check(ctx, tx, g, r); err != nil {
		return notApplied(err)
	}
	if err := guarded.note(work(guarded)); err != nil && guarded.ended() == nil {
		return workError{err}
	}
	if err := guarded.ended(); err != nil {
		return notApplied(err)
	}
	if !guarded.sure {
		if err := g.Dialect.confirm(ctx, tx, r); err != nil {
			return notApplied(err)
		}
	}
	if ctx.Err() != nil {
		return notApplied(context.Cause(ctx))
	}
	if err := tx.Commit(); err != nil {
		if repeatable(err) {
			return notApplied(err)
		}
		return err
	}
	g.known.learn(r.holding)
	return nil
}

func notApplied(err error) error {
	if fence.Refused(err) || errors.Is(err, ErrEnded) {
		return err
	}
	return fmt.Errorf("%w: %w", fence.ErrNotApplied, err)
}

// Claim is Do without work. A new holder that claims what it is to read knows that
// no older one changes it any more. Repeating a Claim does no harm.
func (g *Guard) Claim(ctx context.Context, db DB, h fence.Holding, resource string) error {
	return g.Do(ctx, db, h, resource, func(*Tx) error { return nil })
}
