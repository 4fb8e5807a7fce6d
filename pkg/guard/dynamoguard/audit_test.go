package dynamoguard_test

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/guard/dynamoguard"
)

func TestAnAuditOfTheStreamFindsWhoWritesPastTheGuard(t *testing.T) {
	var a dynamoguard.Attributes
	image := func(lock, token, write, state string) item {
		return item{"pawl_lock": str(lock), "pawl_fence": &types.AttributeValueMemberN{Value: token}, "pawl_write": str(write), "state": str(state)}
	}
	without := func(i item, name string) item {
		i = maps.Clone(i)
		delete(i, name)
		return i
	}
	with := func(i item, name string, v types.AttributeValue) item {
		i = maps.Clone(i)
		i[name] = v
		return i
	}
	before, yes := image(order, "17", "1-A", "paid"), &types.AttributeValueMemberBOOL{Value: true}
	for name, c := range map[string]struct {
		before, after item
		past          bool
	}{
		"a guarded write":             {before, image(order, "18", "2-B", "shipped"), false},
		"another of the same holder":  {before, image(order, "17", "2-B", "shipped"), false},
		"nothing changes":             {before, before, false},
		"a new item":                  {nil, before, false},
		"an item without a guard":     {item{"state": str("a")}, item{"state": str("b")}, false},
		"a tombstone is pruned":       {with(before, "pawl_tombstone", yes), nil, false},
		"a write of the state alone":  {before, with(before, "state", str("mine")), true},
		"an older token":              {before, image(order, "16", "2-B", "late"), true},
		"a put of an old copy":        {image(order, "18", "2-B", "new"), before, true},
		"a put without a guard":       {before, item{"state": str("mine")}, true},
		"the item is deleted":         {before, nil, true},
		"it is bound to another lock": {before, image("payments/carts/42", "99", "2-B", "mine"), true},
		"the lock is dropped":         {before, without(image(order, "17", "2-B", "mine"), "pawl_lock"), true},
		"the token becomes a text":    {before, with(image(order, "17", "2-B", "mine"), "pawl_fence", str("17")), true},
		"it becomes a tombstone":      {before, with(before, "pawl_tombstone", yes), true},
		"the state is removed":        {before, without(before, "state"), true},
	} {
		if got := a.Bypassed(c.before, c.after); got != c.past {
			t.Errorf("%s: got %v, want %v", name, got, c.past)
		}
	}
}

// The images that real writes leave.
func TestEveryGuardedWriteLeavesANewID(t *testing.T) {
	x := newTable(t)
	a := dynamoguard.Attributes{}
	look := func() item {
		i, err := x.get(t.Context(), x.client, "a")
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	x.write("a", 5, "paid")
	for name, do := range map[string]func(){
		"an update": func() { x.write("a", 5, "paid") },
		"a claim": func() {
			if err := x.guard().Claim(t.Context(), holding(5), x.name, x.key("a")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		before := look()
		do()
		if after := look(); a.Bypassed(before, after) || before["pawl_write"].(*types.AttributeValueMemberS).Value == after["pawl_write"].(*types.AttributeValueMemberS).Value {
			t.Errorf("%s: %v became %v", name, before, after)
		}
	}
	before := look()
	if _, err := x.client.UpdateItem(t.Context(), x.becomes("a", "mine")); err != nil {
		t.Fatal(err)
	}
	if !a.Bypassed(before, look()) {
		t.Error("a plain update was not found")
	}
}
