// Package dynamoguard has DynamoDB refuse writes with a stale fencing token. A
// [Guard] adds a condition and a few attributes to the caller's own PutItem,
// UpdateItem or TransactWriteItems, so it costs no request of its own: the item
// takes the write if it has seen no larger token, and remembers the token with
// it.
//
//	update := guard.Stamp(expression.Set(state, shipped))
//	condition := guard.Condition().And(state.Equal(paid))
//
// It protects what goes through it. BatchWriteItem takes no conditions, and a
// plain DeleteItem, the table's TTL, a restored backup, or a write that replaces
// the item without a stamp makes it forget the token: delete with a tombstone,
// and keep guarded items out of TTL. A global table with eventual consistency has no order of
// writes to guard; one Region or multi-Region strong consistency has.
package dynamoguard

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A Guard is the right of one lease to change one item. It is a value: make one
// per write, or share it between writes to items of the same lock. Tokens may
// come from Pawl or from any other counter that only grows.
type Guard struct {
	// Lock is the full name of the lock, "namespace/lock". Required.
	Lock string

	// Token is the token of the grant of Lock. Required.
	Token fence.Token

	// With has the tokens of further locks that the writer holds, by their full
	// names. Each is compared with its own.
	With map[string]fence.Token

	// Locks are the locks whose tokens the item takes, whether this writer holds
	// them or not. Empty means Lock and those of With. The first write binds the
	// item to them for good; writers that declare others are refused.
	Locks []string

	// Attributes are where the item keeps what the guard knows.
	Attributes Attributes

	// Resource names the item in errors and logs. Empty means "DynamoDB item".
	Resource string

	// OnRefusal is told of refusals that [Guard.Refused] finds.
	OnRefusal fence.Observer
}

// Attributes are the names of the attributes that a guard adds to an item. All
// writers of an item must use the same.
type Attributes struct {
	// Fence is the largest token seen, a number. Empty means "fence". Where an
	// item takes the tokens of several locks there is one attribute for each,
	// with ":" and the lock after this name.
	Fence string

	// Lock is the lock that the item is bound to, a string, or a set of several.
	// Empty means "fence_lock".
	Lock string

	// Tombstone is true in an item that stands for none: it was deleted, or
	// claimed and never written. Other items lack it. Empty means
	// "fence_tombstone".
	Tombstone string
}

func (a Attributes) fence() string     { return cmp.Or(a.Fence, "fence") }
func (a Attributes) lock() string      { return cmp.Or(a.Lock, "fence_lock") }
func (a Attributes) tombstone() string { return cmp.Or(a.Tombstone, "fence_tombstone") }

// Absent reports whether what was read is no item: nothing, or a tombstone.
func (a Attributes) Absent(item map[string]types.AttributeValue) bool {
	return len(item) == 0 || item[a.tombstone()] != nil
}

// Check returns an error that matches [fence.ErrInvalid] or [fence.ErrOtherLock]
// unless g can be used. Without it the same comes to light when the expression is
// built, which fails, and [Guard.Refused] says why.
func (g Guard) Check() error { return g.terms().err }
