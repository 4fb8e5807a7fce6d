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

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/guardtest"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

func TestEveryPromiseOfAGuardIsKept(t *testing.T) {
	eachWay(t, func(t *testing.T, k kind) {
		t.Run("table", func(t *testing.T) { guardtest.Run(t, k.store(t, tableForm)) })
		t.Run("row", func(t *testing.T) { guardtest.Run(t, k.store(t, rowForm)) })
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
	tableForm form = iota // Check and Bind
	rowForm               // Update
)

// A store makes documents. One with the table form gets a space of its own: all
// that is in one space knows the same tokens.
type store struct {
	kind
	t    *testing.T
	form form
	dsn  string
	db   *sql.DB
	last *atomic.Int32
}

func (k kind) store(t *testing.T, f form) func(*testing.T) guardtest.Store {
	s := store{kind: k, form: f, dsn: k.forTest(t), last: new(atomic.Int32)}
	s.db = k.open(t, s.dsn)
	k.create(t, s.db)
	exec(t, s.db, k.dialect.Columns("doc"))
	return func(t *testing.T) guardtest.Store {
		mine := s
		mine.t = t
		return mine
	}
}

func (s store) New(ctx context.Context, locks ...string) (guardtest.Resource, error) {
	d := document{store: s, id: s.last.Add(1), declared: locks}
	// A row carries the token of one lock only.
	if s.form == rowForm && len(locks) < 2 {
		_, err := s.db.ExecContext(ctx, s.marks.Replace("INSERT INTO doc (id) VALUES ($1)"), d.id)
		return d, err
	}
	space := "pawl_" + strings.ToLower(rand.Text())
	exec(s.t, s.db, "CREATE "+s.space+" "+space)
	s.t.Cleanup(func() { exec(s.t, s.db, "DROP "+s.space+" "+space+s.cascade) })
	d.form = tableForm
	d.kind = s.with(func(c *connection) { s.enter(c, space) })
	d.db = d.open(s.t, d.dsn)
	s.create(s.t, d.db)
	return d, nil
}

func (s store) Reopen(_ context.Context, r guardtest.Resource) (guardtest.Resource, error) {
	d := r.(document)
	d.db = d.open(s.t, d.dsn)
	return d, nil
}

// A document is a row of the table doc.
type document struct {
	store
	id       int32
	declared []string
}

func (d document) Write(ctx context.Context, lock string, token fence.Token, text string) error {
	return d.transact(ctx, lock, token, []any{text})
}

func (d document) Delete(ctx context.Context, lock string, token fence.Token) error {
	return d.transact(ctx, lock, token, []any{nil})
}

func (d document) Claim(ctx context.Context, lock string, token fence.Token) error {
	return d.transact(ctx, lock, token, nil)
}

func (d document) Read(ctx context.Context) (string, bool, error) {
	var body sql.NullString
	err := d.db.QueryRowContext(ctx, d.marks.Replace("SELECT body FROM doc WHERE id = $1"), d.id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return body.String, body.Valid, err
}

// transact changes the body, if one is given; nil deletes the document.
func (d document) transact(ctx context.Context, lock string, token fence.Token, body []any) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", guardtest.ErrNotApplied, err)
	}
	defer tx.Rollback() // does nothing after a commit
	if err := d.change(ctx, tx, lock, token, body); err != nil {
		if errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrOtherLock) || errors.Is(err, fence.ErrInvalid) {
			return err
		}
		return fmt.Errorf("%w: %w", guardtest.ErrNotApplied, err)
	}
	if err := tx.Commit(); mayBeRepeated(err) {
		return fmt.Errorf("%w: %w", guardtest.ErrNotApplied, err)
	} else {
		return err
	}
}

func (d document) change(ctx context.Context, tx *sql.Tx, lock string, token fence.Token, body []any) error {
	if d.form == rowForm {
		set := ""
		if body != nil {
			set = d.marks.Replace("body = $1")
		}
		return d.dialect.Update(ctx, tx, sqlguard.Row{Table: "doc", Key: "id", ID: d.id}, lock, token, set, body...)
	}
	if err := d.dialect.Check(ctx, tx, lock, token); err != nil {
		return err
	}
	if err := d.dialect.Bind(ctx, tx, "doc", lock, d.declared...); err != nil || body == nil {
		return err
	}
	// The document may have been deleted, and forgets what it was.
	if _, err := tx.ExecContext(ctx, d.marks.Replace("DELETE FROM doc WHERE id = $1"), d.id); err != nil || body[0] == nil {
		return err
	}
	_, err := tx.ExecContext(ctx, d.marks.Replace("INSERT INTO doc (id, body) VALUES ($1, $2)"), d.id, body[0])
	return err
}
