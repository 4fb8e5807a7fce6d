// Package guardtest is what every guard promises, as tests: one table of cases,
// and writers that compete with random tokens and have their history checked.
//
// It sees a guard through [Resource], so it does not test what is special to one
// store: how a guard joins the caller's own statement, or what a connection that
// breaks at a bad moment leaves behind.
package guardtest

import (
	"context"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Resource is one thing in a store behind a guard: a row, an item, an object,
// a key. It holds a text, or nothing. Its methods are safe for concurrent use.
//
// Those that take a holding fail with what the guard fails with. An error that is
// no refusal ([fence.Refused]) means that the outcome is unknown, unless it matches
// [fence.ErrNotApplied].
type Resource interface {
	// Write replaces the text.
	Write(ctx context.Context, h fence.Holding, text string) error

	// Claim has the guard see the tokens and changes nothing else.
	Claim(ctx context.Context, h fence.Holding) error

	// Delete removes the text; the guard still knows the tokens.
	Delete(ctx context.Context, h fence.Holding) error

	// Read returns the text, and false if there is none.
	Read(ctx context.Context) (text string, found bool, err error)

	// Seen returns what the guard knows of it.
	Seen(ctx context.Context) (map[string]fence.Token, error)

	// Reset has it take the tokens of the holding, whatever it has seen.
	Reset(ctx context.Context, h fence.Holding) error

	// Prune has the guard forget the resource, if it holds no text and the last
	// new token was seen before a time. Other resources stay as they are.
	Prune(ctx context.Context, before time.Time) error

	// Twice returns the resource through a client whose next change arrives, has
	// its answer lost, and is sent again below the guard after between. Where a
	// store has no such client, the resource itself calls between before its change.
	Twice(between func()) Resource

	// Asleep returns the resource through a process that is stopped in its next
	// change, at the last moment before it takes effect. Then it calls stopped, and
	// goes on when that returns.
	Asleep(stopped func()) Resource
}

// A Store makes resources for tests.
type Store interface {
	// New returns a resource that has never been written to. It belongs to the
	// lock of its first change, or to all that are declared.
	New(ctx context.Context, locks ...string) (Resource, error)

	// Reopen returns the same resource as another process would see it that has
	// just started: new connections, nothing remembered, and these locks declared.
	Reopen(ctx context.Context, r Resource, locks ...string) (Resource, error)
}
