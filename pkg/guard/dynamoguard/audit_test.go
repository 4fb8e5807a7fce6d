package dynamoguard_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
)

func TestAnAuditOfTheStreamFindsWhoWritesPastTheGuard(t *testing.T) {
	type image = map[string]types.AttributeValue
	token := func(name, n string) image { return image{name: &types.AttributeValueMemberN{Value: n}} }
	text := func(s string) image { return image{"state": &types.AttributeValueMemberS{Value: s}} }
	for name, c := range map[string]struct {
		attributes    dynamoguard.Attributes
		before, after image
		back          bool
	}{
		"a newer token":               {before: token("fence", "17"), after: token("fence", "18")},
		"the same token":              {before: token("fence", "17"), after: token("fence", "17")},
		"an older token":              {before: token("fence", "18"), after: token("fence", "17"), back: true},
		"a shorter number":            {before: token("fence", "100"), after: token("fence", "99"), back: true},
		"no token any more":           {before: token("fence", "18"), after: text("shipped"), back: true},
		"no item any more":            {before: token("fence", "18"), back: true},
		"a new item":                  {after: token("fence", "17")},
		"an item without a guard":     {before: text("paid"), after: text("shipped")},
		"an older token of one lock":  {before: token("fence:a/b", "18"), after: token("fence:a/b", "17"), back: true},
		"another attribute":           {before: token("fences", "18"), after: token("fences", "17")},
		"an attribute of one's own":   {attributes: dynamoguard.Attributes{Fence: "f"}, before: token("f", "18"), after: token("f", "17"), back: true},
		"what is called fence by all": {attributes: dynamoguard.Attributes{Fence: "f"}, before: token("fence", "18"), after: token("fence", "17")},
	} {
		if got := c.attributes.WentBack(c.before, c.after); got != c.back {
			t.Errorf("%s: got %v, want %v", name, got, c.back)
		}
	}
}
