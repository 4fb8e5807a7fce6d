package dynamoguard

import (
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Bypassed reports whether a change of an item was made past the guard. It takes
// the item before and after the change, as DynamoDB Streams tell of it with
// NEW_AND_OLD_IMAGES: the stream is the audit of a table that keeps no history.
// Every guarded write leaves a new id, so one that leaves the old, or none, or an
// older token, was not guarded. A reset shows as what it is, too.
//
// An item that was not guarded before is no bypass, nor is the end of a tombstone,
// which Prune brings about. A forged id is not found.
func (a Attributes) Bypassed(before, after Item) bool {
	was, guarded := before[a.write()].(*types.AttributeValueMemberS)
	if !guarded {
		return false
	}
	is, guarded := after[a.write()].(*types.AttributeValueMemberS)
	switch {
	case len(after) == 0:
		return !a.Absent(before)
	case !guarded:
		return true
	case was.Value == is.Value:
		return !reflect.DeepEqual(before, after)
	}
	seen, err := a.Seen(before)
	now, errNow := a.Seen(after)
	if err != nil || errNow != nil {
		return errNow != nil
	}
	for lock, token := range seen {
		if t, bound := now[lock]; !bound || t < token {
			return true
		}
	}
	return false
}
