package dynamoguard

import (
	"cmp"
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// An Item is attributes by their names, as the SDK has them.
type Item = map[string]types.AttributeValue

// A Guard guards items. It is safe for concurrent use, and must not be changed
// after the first. All who write an item must agree on Locks and Attributes.
//
// Its methods fail with a [fence.StaleError] or a [fence.OtherLockError] if it
// refuses, and with [fence.ErrInvalid] for what can be nobody's. A condition of the
// caller's own that failed stays a ConditionalCheckFailedException or a
// TransactionCanceledException. After any other error the write may have been made;
// the same holder may repeat it.
type Guard struct {
	// Client reaches the tables. Required, but for the expressions.
	Client Client

	// Locks are the full names of the locks that share every item, whether a caller
	// holds them or not. None means those that the caller holds. See
	// [fence.Holding.Admit] for how one is added.
	Locks []string

	// Attributes are where an item keeps what the guard knows.
	Attributes Attributes

	// Observer is told of every refusal. Nil means nobody is.
	Observer fence.Observer
}

// A Client is what the guard needs of a [*dynamodb.Client].
type Client interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput,
		...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput,
		...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Attributes are the names of the attributes that a guard adds to an item. They
// exist together, or the item is not guarded yet: one of the caller's own by such a
// name is never taken for the guard's, nor changed.
type Attributes struct {
	// Fence is the largest token seen, a number. Empty means "pawl_fence". Where an
	// item takes the tokens of several locks there is one attribute for each, with
	// ":" and the lock after this name.
	Fence string

	// Lock is the lock that the item is bound to, a string, or a set of several.
	// Empty means "pawl_lock".
	Lock string

	// Write is the id of the last write, a string that begins with its time. Empty
	// means "pawl_write".
	Write string

	// Tombstone is true in an item that stands for none: it was deleted, or claimed
	// and never written. Other items lack it. Empty means "pawl_tombstone".
	Tombstone string
}

func (a Attributes) fence() string     { return cmp.Or(a.Fence, "pawl_fence") }
func (a Attributes) lock() string      { return cmp.Or(a.Lock, "pawl_lock") }
func (a Attributes) write() string     { return cmp.Or(a.Write, "pawl_write") }
func (a Attributes) tombstone() string { return cmp.Or(a.Tombstone, "pawl_tombstone") }

// Absent reports whether what was read is no item: nothing, or a tombstone.
func (a Attributes) Absent(item Item) bool {
	return len(item) == 0 || item[a.tombstone()] != nil
}

// ErrAnswerLost means that a write was applied, in an attempt whose answer was
// lost, and that what it was to return is not known.
var ErrAnswerLost = errors.New("the write was applied, and its answer was lost")
