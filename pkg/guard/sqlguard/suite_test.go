package sqlguard_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/guardtest"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

func TestEveryPromiseOfAGuardIsKept(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		t.Run("table", func(t *testing.T) { guardtest.Run(t, k.store(t, tableForm)) })
		t.Run("row", func(t *testing.T) { guardtest.RunInside(t, k.store(t, rowForm)) })
	})
}

func TestPromisesAreKeptUnderTheHammer(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Run("table", func(t *testing.T) { guardtest.Hammer(t, k.store(t, tableForm)) })
		t.Run("row", func(t *testing.T) { guardtest.Hammer(t, k.store(t, rowForm)) })
	})
}

// A form is one of the two ways to guard.
type form int

const (
	tableForm form = iota // Do
	rowForm               // Update
)

// A store makes documents. One with the table form gets a schema of its own: all
// that is in one schema knows the same tokens.
type store struct {
	kind
	t    *testing.T
	form form
	dsn  string
	db   *sql.DB
	g    *sqlguard.Guard
	last *atomic.Int32
}

func (k kind) store(t *testing.T, f form) func(*testing.T) guardtest.Store {
	s := store{kind: k, form: f, dsn: k.forTest(t), last: new(atomic.Int32)}
	s.db = k.open(t, s.dsn)
	s.g = k.guard(t, s.db)
	k.create(t, s.db, s.g)
	return func(t *testing.T) guardtest.Store {
		mine := s
		mine.t = t
		return mine
	}
}

func (s store) New(ctx context.Context, locks ...string) (guardtest.Resource, error) {
	d := document{store: s, id: s.last.Add(1)}
	if s.form == rowForm {
		_, err := s.db.ExecContext(ctx, s.marks.Replace("INSERT INTO doc (id) VALUES ($1)"), d.id)
		return d, err
	}
	d.g = &sqlguard.Guard{Dialect: s.dialect, Schema: "pawl_" + strings.ToLower(rand.Text()), Locks: locks}
	for _, statement := range d.g.Statements() {
		exec(s.t, s.db, statement)
	}
	s.t.Cleanup(func() { exec(s.t, s.db, "DROP "+s.space+" "+d.g.Schema+s.cascade) })
	return d, nil
}

func (s store) Reopen(_ context.Context, r guardtest.Resource, locks ...string) (guardtest.Resource, error) {
	d := r.(document)
	d.db = d.open(s.t, d.dsn)
	d.g = &sqlguard.Guard{Dialect: d.dialect, Schema: d.g.Schema, Locks: locks}
	return d, nil
}

// A document is a row of the table doc.
type document struct {
	store
	id      int32
	between func()
	stopped func()
}

func (d document) Write(ctx context.Context, h fence.Holding, text string) error {
	return d.change(ctx, h, []any{text})
}

func (d document) Delete(ctx context.Context, h fence.Holding) error {
	return d.change(ctx, h, []any{nil})
}

func (d document) Claim(ctx context.Context, h fence.Holding) error { return d.change(ctx, h, nil) }

func (d document) Read(ctx context.Context) (string, bool, error) {
	var body sql.NullString
	err := d.db.QueryRowContext(ctx, d.marks.Replace("SELECT body FROM doc WHERE id = $1"), d.id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return body.String, body.Valid, err
}

// change changes the body, if one is given; nil deletes the document.
func (d document) change(ctx context.Context, h fence.Holding, body []any) error {
	if d.between != nil {
		d.between() // nothing sends a transaction twice
	}
	if d.form == rowForm {
		return d.changeRow(ctx, h, body)
	}
	if d.stopped == nil && body == nil {
		return d.g.Claim(ctx, d.db, h, d.resource())
	}
	return d.g.Do(ctx, d.db, h, d.resource(), func(tx *sqlguard.Tx) error {
		d.stop()
		if body == nil {
			return nil
		}
		// The document may have been deleted, and forgets what it was.
		if _, err := tx.ExecContext(ctx, d.marks.Replace("DELETE FROM doc WHERE id = $1"), d.id); err != nil || body[0] == nil {
			return err
		}
		_, err := tx.ExecContext(ctx, d.marks.Replace("INSERT INTO doc (id, body) VALUES ($1, $2)"), d.id, body[0])
		return err
	})
}

func (d document) stop() {
	if d.stopped != nil {
		d.stopped()
	}
}

func (d document) resource() string { return fmt.Sprintf("doc/%d", d.id) }

func (d document) row() sqlguard.Row {
	return sqlguard.Row{Table: "doc", Key: map[string]any{"id": d.id}}
}

func (d document) changeRow(ctx context.Context, h fence.Holding, body []any) error {
	err := d.do(ctx, d.db, nil, func(tx *sql.Tx) error {
		set := ""
		if body != nil {
			set = d.marks.Replace("body = $1")
		}
		if d.stopped != nil {
			exec(d.t, tx, d.idle)
		}
		if err := d.g.Update(ctx, tx, h, d.row(), set, body...); err != nil {
			if fence.Refused(err) {
				return err
			}
			return fmt.Errorf("%w: %w", fence.ErrNotApplied, err)
		}
		d.stop()
		return nil
	})
	if mayBeRepeated(err) && !errors.Is(err, fence.ErrNotApplied) {
		err = fmt.Errorf("%w: %w", fence.ErrNotApplied, err)
	}
	return err
}

func (d document) Seen(ctx context.Context) (map[string]fence.Token, error) {
	if d.form == tableForm {
		return d.g.Seen(ctx, d.db, d.resource())
	}
	var lock string
	var token int64
	err := d.db.QueryRowContext(ctx, d.marks.Replace("SELECT fence_lock, fence_token FROM doc WHERE id = $1"), d.id).Scan(&lock, &token)
	return map[string]fence.Token{lock: fence.Token(token)}, err
}

func (d document) Reset(ctx context.Context, h fence.Holding) error {
	if d.form == tableForm {
		return d.g.Reset(ctx, d.db, h, d.resource())
	}
	if err := h.Check(); err != nil {
		return err
	}
	statement := fmt.Sprintf("UPDATE doc SET fence_lock = '%s', fence_token = %d WHERE id = %d", h.Lock, h.Token, d.id)
	_, err := d.db.ExecContext(ctx, statement)
	return err
}

func (d document) Prune(ctx context.Context, before time.Time) error {
	_, err := d.g.Prune(ctx, d.db, before)
	return err
}

func (d document) Twice(between func()) guardtest.Resource {
	d.between = between
	return d
}

func (d document) Asleep(stopped func()) guardtest.Resource {
	d.stopped = stopped
	d.g = &sqlguard.Guard{Dialect: d.dialect, Schema: d.g.Schema, Locks: d.g.Locks, Idle: time.Second}
	return d
}
