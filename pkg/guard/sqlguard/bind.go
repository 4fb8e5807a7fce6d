package sqlguard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Bind makes sure that a resource belongs to the lock whose token was checked,
// since tokens of two locks cannot be compared. The first Bind that commits
// binds the resource for good; with another lock it fails with a
// [fence.OtherLockError], and the transaction is to be rolled back. What a
// resource is, the caller decides: a name of 1 to 576 bytes for a row, a table
// or a customer.
//
// Where several locks guard one resource, those that share it are declared in
// every call, and each is compared with its own tokens.
func (d Dialect) Bind(ctx context.Context, tx Tx, resource, lock string, declared ...string) error {
	return d.Observer.See(ctx, d.bindTo(ctx, tx, resource, lock, declared))
}

func (d Dialect) bindTo(ctx context.Context, tx Tx, resource, lock string, declared []string) error {
	if resource == "" || len(resource) > maxName {
		return fmt.Errorf("sqlguard: bind %q: want a name of 1 to %d bytes", resource, maxName)
	}
	if len(declared) == 0 {
		declared = []string{lock}
	}
	if !slices.Contains(declared, lock) {
		return &fence.OtherLockError{Lock: lock, Bound: strings.Join(declared, ", "), Resource: resource}
	}
	bound, err := d.bind(ctx, tx, resource, lock)
	if err != nil {
		return fmt.Errorf("sqlguard: bind %q: %w", resource, err)
	}
	if !slices.Contains(declared, bound) {
		return &fence.OtherLockError{Lock: lock, Bound: bound, Resource: resource}
	}
	return nil
}
