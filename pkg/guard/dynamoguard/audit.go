package dynamoguard

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// WentBack reports whether a change of an item took it back to an older token,
// or made it forget one: then somebody writes past the guard. It takes the item
// before and after the change, as DynamoDB Streams tell of it with
// NEW_AND_OLD_IMAGES: the stream is the audit of a table that keeps no history.
// An item that was created, or was not guarded yet, has not gone back.
func (a Attributes) WentBack(before, after map[string]types.AttributeValue) bool {
	for name, token := range before {
		if name == a.fence() || strings.HasPrefix(name, a.fence()+":") {
			if seen(after[name]) < seen(token) {
				return true
			}
		}
	}
	return false
}
