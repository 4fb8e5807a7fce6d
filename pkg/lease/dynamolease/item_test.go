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
)

// full is an item with every attribute, each with a value of its own.
var full = map[string]types.AttributeValue{
	"pk": str("a#b"), "tok": num(1), "acq": num(2), "lid": str("lid"), "rid": str("rid"), "own": str("own"), "sub": str("sub"),
	"since": num(3), "ptok": num(4), "pexp": num(5), "pown": str("pown"), "exp": num(6), "free": num(7), "hold": num(8),
	"dly": num(9), "ttl": num(10), "meta": str("meta"), "gc": num(11), "v": num(1),
}

func TestDecodeReadsEveryAttribute(t *testing.T) {
	want := lease.Record{
		Token: 1, Clock: 2, LeaseID: "lid", RequestID: "rid", Holder: "own", Principal: "sub", Since: 3,
		PrevToken: 4, PrevExpires: 5, PrevHolder: "pown", Expires: 6, Free: 7, Hold: 8,
		Delay: 9 * time.Millisecond, TTL: 10 * time.Millisecond, Metadata: "meta", Retire: 11,
	}
	if got, err := decode(full); got != want || err != nil {
		t.Errorf("got  %+v, error %v\nwant %+v", got, err, want)
	}
}

func TestAMissingItemIsALockOfWhichNothingIsRecorded(t *testing.T) {
	for _, item := range []map[string]types.AttributeValue{nil, {}} {
		if got, err := decode(item); got != (lease.Record{}) || err != nil {
			t.Errorf("got %+v, error %v", got, err)
		}
	}
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
		if !errors.Is(err, lease.ErrMisconfigured) || got != (lease.Record{}) {
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
