package dynamolease

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// A change is a statement with its values, ready to be executed.
type change struct {
	statement
	values map[string]types.AttributeValue
	before bool // the answer is to be the item as it was before
}

// granting turns the record seen, or any record when it is zero, into next.
func granting(seen, next protocol.Record, floor protocol.Instant) change {
	values := map[string]types.AttributeValue{
		":seed":  num(next.Token - 1),
		":inc":   num(1),
		":acq":   num(next.Clock),
		":lid":   str(next.LeaseID),
		":rid":   str(next.RequestID),
		":own":   str(next.Holder),
		":sub":   str(next.Principal),
		":now":   num(next.Since),
		":exp":   num(next.Expires),
		":free":  num(next.Free),
		":hold":  num(next.Hold),
		":dly":   num(next.Delay.Milliseconds()),
		":ttl":   num(next.TTL.Milliseconds()),
		":gc":    num(next.Retire),
		":v":     num(1),
		":zero":  num(0),
		":empty": str(""),
	}
	fast := seen.Token == 0
	if fast {
		values[":floor"], values[":most"] = num(max(floor, 1)), num(fence.Max-1)
	} else {
		values[":inc"] = num(next.Token - seen.Token)
		values[":old"] = num(seen.Token)
	}
	c := change{values: values}
	switch meta := next.Metadata != ""; {
	case fast && meta:
		c.statement = grantFastMeta
	case fast:
		c.statement = grantFast
	case meta:
		c.statement = grantSlowMeta
	default:
		c.statement = grantSlow
	}
	if next.Metadata != "" {
		values[":meta"] = str(next.Metadata)
	}
	c.nameMarks(protocol.Withdrawal{RequestID: next.RequestID, Principal: next.Principal}.Mark())
	return c
}

func renewing(now protocol.Instant, next protocol.Record) change {
	return change{statement: renew, values: map[string]types.AttributeValue{
		":lid": str(next.LeaseID),
		":tok": num(next.Token),
		":now": num(now),
		":exp": num(next.Expires),
		":ttl": num(next.TTL.Milliseconds()),
		":gc":  num(next.Retire),
	}}
}

func releasing(q lease.ReleaseRequest) change {
	return change{statement: release, before: true, values: map[string]types.AttributeValue{
		":lid": str(q.LeaseID),
		":tok": num(q.Token),
	}}
}

// takingBack turns the record granted, of a grant that nobody was told of, into
// [protocol.Record.TakenBack].
func takingBack(granted protocol.Record) change {
	c := change{statement: takeBack, values: map[string]types.AttributeValue{
		":lid":  str(granted.LeaseID),
		":tok":  num(granted.Token),
		":zero": num(0),
	}}
	if granted.PrevExpires > 0 {
		c.statement = takeBackAbandoned
	}
	return c
}

func breaking(seen, next protocol.Record) change {
	return change{statement: breakLease, values: map[string]types.AttributeValue{
		":old":  num(seen.Token),
		":inc":  num(next.Token - seen.Token),
		":gc":   num(next.Retire),
		":one":  num(1),
		":zero": num(0),
	}}
}

func num[N ~int64 | ~int](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func key(n lease.Name) map[string]types.AttributeValue {
	// A namespace has no '#', so no two names share a key.
	return map[string]types.AttributeValue{KeyAttribute: str(n.Namespace + "#" + n.Lock)}
}

// decode reads an item. A missing one is the zero record.
func decode(item map[string]types.AttributeValue) (protocol.Record, error) {
	if len(item) == 0 {
		return protocol.Record{}, nil
	}
	d := decoder{item: item}
	r := protocol.Record{
		Token:       fence.Token(d.num("tok")),
		Clock:       protocol.Instant(d.num("acq")),
		LeaseID:     d.str("lid"),
		RequestID:   d.str("rid"),
		Holder:      d.str("own"),
		Principal:   d.str("sub"),
		Metadata:    d.str("meta"),
		Since:       protocol.Instant(d.num("since")),
		Expires:     protocol.Instant(d.num("exp")),
		Free:        protocol.Instant(d.num("free")),
		Hold:        protocol.Instant(d.num("hold")),
		TTL:         time.Duration(d.num("ttl")) * time.Millisecond,
		Delay:       time.Duration(d.num("dly")) * time.Millisecond,
		PrevToken:   fence.Token(d.num("ptok")),
		PrevExpires: protocol.Instant(d.num("pexp")),
		PrevHolder:  d.str("pown"),
		Markers:     d.markers("x"),
		Retire:      d.num(RetireAttribute),
	}
	marked := protocol.Record{Markers: r.Markers, Retire: r.Retire} // of a lock that was never granted
	if d.err == nil && !r.Token.Valid() && (r != marked || item["tok"] != nil || item["x"] == nil) {
		d.err = fmt.Errorf("token %d is out of range", r.Token)
	}
	if d.err != nil {
		return protocol.Record{}, fmt.Errorf("%w: the item of %v was not written by this service: %w",
			lease.ErrMisconfigured, d.str(KeyAttribute), d.err)
	}
	return r, nil
}

// A decoder reads attributes, zero for a missing one, and keeps the first error.
type decoder struct {
	item map[string]types.AttributeValue
	err  error
}

func (d *decoder) num(name string) int64 {
	switch a := d.item[name].(type) {
	case nil:
		return 0
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(a.Value, 10, 64)
		if err == nil {
			return n
		}
	}
	d.fail(name)
	return 0
}

func (d *decoder) str(name string) string {
	switch a := d.item[name].(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return a.Value
	}
	d.fail(name)
	return ""
}

// markers reads a map of times.
func (d *decoder) markers(name string) (m protocol.Markers) {
	var all []protocol.Marker
	switch a := d.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberM:
		times := decoder{item: a.Value}
		for mark := range a.Value {
			all = append(all, protocol.Marker{Mark: mark, Until: protocol.Instant(times.num(mark))})
			if at := all[len(all)-1].Until; mark == "" || at <= 0 {
				d.fail(name) // it would be no marker, and allow a grant
			}
		}
	default:
		d.fail(name)
	}
	m, ok := protocol.MarkersOf(all)
	if !ok {
		d.fail(name)
	}
	return m
}

func (d *decoder) fail(name string) {
	if d.err == nil {
		d.err = fmt.Errorf("attribute %q is not what it should be", name)
	}
}
