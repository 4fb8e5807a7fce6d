package dynamoguard

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A claim is what a holding comes to in an item.
type claim struct {
	a        Attributes
	h        fence.Holding
	declared []string // sorted
	id       string   // of the write
}

func (g *Guard) claim(h fence.Holding, resource string) (claim, error) {
	declared, err := h.Declare(g.Locks, resource)
	return claim{g.Attributes, h, declared, newID(time.Now())}, err
}

func newID(t time.Time) string { return fmt.Sprintf("%013d-%s", t.UnixMilli(), rand.Text()) }

// writtenAt is when the write with an id was made.
func writtenAt(id string) (time.Time, bool) {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n), err == nil
}

// attribute has the token of a lock.
func (c claim) attribute(lock string) string { return c.a.token(c.declared, lock) }

func (a Attributes) token(locks []string, lock string) string {
	if len(locks) == 1 {
		return a.fence()
	}
	return a.fence() + ":" + unpathed.Replace(lock)
}

// isToken reports whether an attribute is for a token.
func (a Attributes) isToken(name string) bool {
	return name == a.fence() || strings.HasPrefix(name, a.fence()+":")
}

// unpathed takes out what package expression reads as a document path.
var unpathed = strings.NewReplacer("%", "%25", ".", "%2E", "[", "%5B", "]", "%5D")

// held is the token of a lock that is held, or zero.
func (c claim) held(lock string) fence.Token {
	if lock == c.h.Lock {
		return c.h.Token
	}
	return c.h.With[lock]
}

// binding is the value of the attribute for locks.
func binding(locks []string) types.AttributeValue {
	if len(locks) > 1 {
		return &types.AttributeValueMemberSS{Value: locks}
	}
	return text(locks[0])
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(t fence.Token) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: t.String()}
}

// stamped returns the item with the tokens, those of locks that are not held as
// they were seen. It may be a copy of one that was read, with what the guard knew
// then, but have nothing of the caller's own by these names.
func (c claim) stamped(item Item, seen map[string]fence.Token, tombstone bool) (Item, error) {
	if _, err := c.a.Seen(item); err != nil {
		return nil, err
	}
	stamped := make(Item)
	for name, value := range item {
		if !c.a.isToken(name) && name != c.a.tombstone() {
			stamped[name] = value
		}
	}
	for _, lock := range c.declared {
		stamped[c.attribute(lock)] = number(cmp.Or(c.held(lock), seen[lock]))
	}
	stamped[c.a.lock()], stamped[c.a.write()] = binding(c.declared), text(c.id)
	if tombstone {
		stamped[c.a.tombstone()] = &types.AttributeValueMemberBOOL{Value: true}
	}
	return stamped, nil
}

// errForeign means that an item has attributes by names of the guard's that are
// not the guard's.
var errForeign = fmt.Errorf("%w: the item has an attribute by a name of the guard's that is not the guard's:"+
	" choose other names in Attributes", fence.ErrInvalid)

// Seen returns what an item that was read knows: the largest token of each lock
// that it is bound to, zero where none was seen. Of an item that is not guarded it
// is empty. It fails with [fence.ErrInvalid] for attributes by these names that no
// guard has written.
func (a Attributes) Seen(item Item) (map[string]fence.Token, error) {
	bound := names(item[a.lock()])
	seen := make(map[string]fence.Token)
	for _, lock := range bound {
		n, ok := item[a.token(bound, lock)].(*types.AttributeValueMemberN)
		if !ok {
			return nil, errForeign
		}
		t, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || t != 0 && !fence.Token(t).Valid() {
			return nil, errors.Join(errForeign, err)
		}
		seen[lock] = fence.Token(t)
	}
	_, written := item[a.write()].(*types.AttributeValueMemberS)
	if len(bound) > 0 && written {
		return seen, nil
	}
	for name := range item {
		if name == a.lock() || name == a.write() || name == a.tombstone() || a.isToken(name) {
			return nil, errForeign
		}
	}
	return nil, nil
}

// names are the locks that an item is bound to, sorted, or nil.
func names(v types.AttributeValue) []string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return []string{v.Value}
	case *types.AttributeValueMemberSS:
		return slices.Sorted(slices.Values(v.Value))
	}
	return nil
}

// resource names an item in errors and logs.
func resource(table *string, key Item) string {
	name := "DynamoDB item"
	if table != nil {
		name = *table
	}
	for _, k := range slices.Sorted(maps.Keys(key)) {
		switch v := key[k].(type) {
		case *types.AttributeValueMemberS:
			name += "/" + v.Value
		case *types.AttributeValueMemberN:
			name += "/" + v.Value
		case *types.AttributeValueMemberB:
			name += fmt.Sprintf("/%x", v.Value)
		}
	}
	return name
}
