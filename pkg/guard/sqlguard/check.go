package sqlguard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Check makes the rest of a transaction that of the holder: it has the database
// remember the tokens when the transaction commits, binds the resources to the
// locks, and fails with a [fence.StaleError] if it has seen a larger token, or
// with a [fence.OtherLockError] if a resource is bound to another lock. It waits
// for transactions of other holders of the lock that have not ended. Check first:
// an older holder may still change what is read before.
//
// After any error, roll back; PostgreSQL then refuses to commit. [Guard.Do] is
// the better way. With Check it is for the caller to see that the transaction is
// still the one that checked: after a deadlock or a statement that commits by
// itself (DDL), MySQL and MariaDB go on without a transaction, unguarded. Never
// repeat a single statement, and ask [Guard.Confirm] before the commit. A rollback
// to a savepoint from before the check undoes it, so never check inside of a
// nested transaction.
func (g *Guard) Check(ctx context.Context, tx Transaction, h fence.Holding, resources ...string) error {
	r, err := g.request(h, resources)
	if err == nil {
		err = g.Dialect.check(ctx, tx, g, r)
	}
	return g.judged(ctx, "check", r, err)
}

// Confirm fails unless the transaction has made this check and not lost it since.
// It is for once, right before the commit: savepoints are gone after it.
func (g *Guard) Confirm(ctx context.Context, tx Transaction, h fence.Holding, resources ...string) error {
	r, err := g.request(h, resources)
	if err == nil {
		err = g.Dialect.confirm(ctx, tx, r)
	}
	return g.judged(ctx, "confirm", r, err)
}

// ErrEnded means that a transaction is not, or no longer, the one that has
// checked. What came before the statement that ended it may be committed.
var ErrEnded = errors.New("the transaction that checked the token has ended")

// judged tells of refusals, of which it is known that they changed nothing: the
// caller's transaction decides once.
func (g *Guard) judged(ctx context.Context, verb string, r request, err error) error {
	switch {
	case err == nil:
		return nil
	case fence.Refused(err):
		return g.Observer.See(ctx, fence.Settled(err))
	}
	if len(r.resources) == 0 {
		return err
	}
	return fmt.Errorf("sqlguard: %s %q: %w", verb, r.resource(), err)
}

// key is the same for equal requests only.
func (r request) key() string {
	sum := sha256.New()
	for lock, token := range r.holding.All() {
		fmt.Fprintf(sum, "%s\n%d\n", lock, token)
	}
	fmt.Fprintf(sum, "\n%q", r.resources)
	return "pawl_" + hex.EncodeToString(sum.Sum(nil)[:12])
}
