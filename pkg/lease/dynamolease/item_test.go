package dynamolease

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// full is an item with every attribute, each with a value of its own.
var full = map[string]types.AttributeValue{
	"pk": str("a#b"), "tok": num(1), "acq": num(2), "lid": str("lid"), "rid": str("rid"), "own": str("own"), "sub": str("sub"),
	"since": num(3), "ptok": num(4), "pexp": num(5), "pown": str("pown"), "exp": num(6), "free": num(7), "hold": num(8),
	"dly": num(9), "ttl": num(10), "meta": str("meta"), "gc": num(11), "v": num(1),
	"x": markers("b", 13, "a", 12),
}

// markers is a map of marks and their times.
func markers(marksAndTimes ...any) types.AttributeValue {
	m := make(map[string]types.AttributeValue)
	for i := 0; i < len(marksAndTimes); i += 2 {
		m[marksAndTimes[i].(string)] = num(marksAndTimes[i+1].(int))
	}
	return &types.AttributeValueMemberM{Value: m}
}

func TestDecodeReadsEveryAttribute(t *testing.T) {
	want := protocol.Record{
		Token: 1, Clock: 2, LeaseID: "lid", RequestID: "rid", Holder: "own", Principal: "sub", Since: 3,
		PrevToken: 4, PrevExpires: 5, PrevHolder: "pown", Expires: 6, Free: 7, Hold: 8,
		Delay: 9 * time.Millisecond, TTL: 10 * time.Millisecond, Metadata: "meta", Retire: 11,
		Markers: protocol.Markers{{Mark: "a", Until: 12}, {Mark: "b", Until: 13}},
	}
	if got, err := decode(full); got != want || err != nil {
		t.Errorf("got  %+v, error %v\nwant %+v", got, err, want)
	}
}

func TestAMissingItemIsALockOfWhichNothingIsRecorded(t *testing.T) {
	for _, item := range []map[string]types.AttributeValue{nil, {}} {
		if got, err := decode(item); got != (protocol.Record{}) || err != nil {
			t.Errorf("got %+v, error %v", got, err)
		}
	}
}

func TestAnItemThatHasOnlyMarkersIsALockThatWasNeverGranted(t *testing.T) {
	want := protocol.Record{Retire: 11, Markers: protocol.Markers{{Mark: "a", Until: 12}}}
	item := map[string]types.AttributeValue{"pk": full["pk"], "gc": num(11), "x": markers("a", 12)}
	if got, err := decode(item); got != want || err != nil {
		t.Errorf("got %+v, error %v", got, err)
	}
	for attribute, v := range full {
		if _, found := item[attribute]; found || attribute == "v" || attribute == "tok" {
			continue
		}
		item := maps.Clone(item)
		item[attribute] = v
		if got, err := decode(item); !errors.Is(err, lease.ErrMisconfigured) {
			t.Errorf("with %s and no token: got %+v, error %v", attribute, got, err)
		}
	}
}

// An item of 1 KB is written for one unit.
func TestTheMarkersLeaveTheItemWithinOneWriteUnit(t *testing.T) {
	item := map[string]types.AttributeValue{
		"pk": str("payments#orders/" + strings.Repeat("4", 60)), "lid": str(lease.NewID()), "rid": str(lease.NewID() + lease.NewID()),
		"own": str(strings.Repeat("w", 64)), "pown": str(strings.Repeat("w", 64)), "sub": str("arn:aws:sts::123456789012:assumed-role/" + strings.Repeat("r", 64)),
		"v": num(1),
	}
	for _, n := range []string{"tok", "acq", "since", "exp", "free", "hold", "ptok", "pexp"} {
		item[n] = num(1_893_499_200_123)
	}
	for _, n := range []string{"dly", "ttl", "gc"} {
		item[n] = num(1_893_499_200)
	}
	r := protocol.Record{}
	for i := range len(r.Markers) {
		var err error
		if r, err = r.Withdraw(protocol.Instant(1_893_499_200_123+i), protocol.Withdrawal{RequestID: lease.NewID()}, protocol.Rules{}); err != nil {
			t.Fatal(err)
		}
	}
	x := make(map[string]types.AttributeValue)
	for _, m := range r.Markers.All() {
		x[m.Mark] = num(m.Until)
	}
	item["x"] = &types.AttributeValueMemberM{Value: x}
	if n := size(item); len(x) != len(r.Markers) || n > 1024 {
		t.Errorf("an item with %d markers has %d bytes", len(x), n)
	}
}

// size is what DynamoDB documents: the lengths of names and texts, a byte for
// two digits and one more, and for a map 3 bytes and one for each member.
func size(item map[string]types.AttributeValue) (n int) {
	for name, v := range item {
		n += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			n += (len(v.Value)+1)/2 + 1
		case *types.AttributeValueMemberM:
			n += 3 + len(v.Value) + size(v.Value)
		}
	}
	return n
}

// Guessing what a strange item means could grant a lock that is held.
func TestAnItemOfSomethingElseIsRefused(t *testing.T) {
	type value = types.AttributeValue
	cases := map[string]struct {
		attribute string
		value     value
	}{
		"no token":                        {"tok", nil},
		"token zero":                      {"tok", num(0)},
		"a negative token":                {"tok", num(-1)},
		"a token that is too large":       {"tok", num(fence.Max + 1)},
		"a token that no int64 holds":     {"tok", &types.AttributeValueMemberN{Value: "18446744073709551617"}},
		"a token with a fraction":         {"tok", &types.AttributeValueMemberN{Value: "1.5"}},
		"a token with an exponent":        {"tok", &types.AttributeValueMemberN{Value: "1E+3"}},
		"a token that is a string":        {"tok", str("1")},
		"a lease id that is bytes":        {"lid", &types.AttributeValueMemberB{Value: []byte("lid")}},
		"a holder that is null":           {"own", &types.AttributeValueMemberNULL{Value: true}},
		"an expiry that is a list":        {"exp", &types.AttributeValueMemberL{}},
		"metadata that is a map":          {"meta", &types.AttributeValueMemberM{}},
		"a retirement that is a boolean":  {"gc", &types.AttributeValueMemberBOOL{}},
		"a request id that is a number":   {"rid", num(1)},
		"a logical clock that is a set":   {"acq", &types.AttributeValueMemberNS{Value: []string{"1"}}},
		"a marker without a time":         {"x", markers("a", 0)},
		"a marker before all times":       {"x", markers("a", -1)},
		"a marker without a name":         {"x", markers("", 12)},
		"more markers than there can be":  {"x", markers("a", 1, "b", 1, "c", 1, "d", 1, "e", 1, "f", 1, "g", 1, "h", 1, "i", 1, "j", 1, "k", 1)},
		"a marker that is a string":       {"x", &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"a": str("12")}}},
		"a previous holder that is a set": {"pown", &types.AttributeValueMemberSS{Value: []string{"a"}}},
	}
	for attribute, v := range full { // and every other one of the wrong type
		if attribute == "pk" || attribute == "v" {
			continue
		}
		wrong := value(num(1))
		if _, number := v.(*types.AttributeValueMemberN); number {
			wrong = str("1")
		}
		cases["the wrong type of "+attribute] = struct {
			attribute string
			value     value
		}{attribute, wrong}
	}
	for name, c := range cases {
		item := maps.Clone(full)
		if item[c.attribute] = c.value; c.value == nil {
			delete(item, c.attribute)
		}
		got, err := decode(item)
		if !errors.Is(err, lease.ErrMisconfigured) || got != (protocol.Record{}) {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		} else if !strings.Contains(err.Error(), "a#b") {
			t.Errorf("%s: %v does not say which item", name, err)
		}
	}
}

func TestTheKeysOfTwoNamesAreDifferent(t *testing.T) {
	seen := make(map[string]lease.Name)
	for _, n := range []lease.Name{
		{Namespace: "ab", Lock: "c"}, {Namespace: "a", Lock: "bc"}, {Namespace: "a", Lock: "b#c"}, {Namespace: "a", Lock: "b/c"}, {Namespace: "a", Lock: "#bc"},
	} {
		k := key(n)["pk"].(*types.AttributeValueMemberS).Value
		if other, found := seen[k]; found {
			t.Errorf("%v and %v have the key %q", n, other, k)
		}
		seen[k] = n
	}
}
