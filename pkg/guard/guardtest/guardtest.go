// Package guardtest is what every guard promises, as tests: one table of cases,
// and writers that compete with random tokens and have their history checked.
//
// It sees a guard through [Resource], so it does not test what is special to one
// store: how a guard joins the caller's own statement, or what a connection that
// breaks at a bad moment leaves behind.
package guardtest

import (
	"context"
	"errors"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// ErrNotApplied is for a [Resource] whose store ended a call without effect and
// without a decision of the guard: a deadlock, a serialization failure.
var ErrNotApplied = errors.New("not applied")

// A Resource is one thing in a store behind a guard: a row, an item, an object,
// a key. It holds a text, or nothing. Its methods are safe for concurrent use
// and take the full name of a lock, and a token of that lock.
//
// Those that change it fail with what the guard fails with. An error that
// matches neither [fence.ErrStale], [fence.ErrOtherLock] nor [fence.ErrInvalid]
// means that the outcome is unknown, unless it matches [ErrNotApplied].
type Resource interface {
	// Write replaces the text.
	Write(ctx context.Context, lock string, token fence.Token, text string) error

	// Claim has the guard see the token and changes nothing else.
	Claim(ctx context.Context, lock string, token fence.Token) error

	// Delete removes the text; the guard still knows the token.
	Delete(ctx context.Context, lock string, token fence.Token) error

	// Read returns the text, and false if there is none.
	Read(ctx context.Context) (text string, found bool, err error)
}

// A Store makes resources for tests.
type Store interface {
	// New returns a resource that has never been written to. It binds itself
	// to the lock of its first write, unless locks are declared: then it takes
	// the tokens of each of them, and compares each with its own.
	New(ctx context.Context, locks ...string) (Resource, error)

	// Reopen returns the same resource as another process would see it that has
	// just started: new connections, nothing remembered.
	Reopen(ctx context.Context, r Resource) (Resource, error)
}
