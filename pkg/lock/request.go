package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// request returns what is asked for to get the lock, without a request id. What
// no deployment allows is refused here: half of it would be obeyed silently.
func (c *Client) request(lock string) (lease.AcquireRequest, error) {
	n, err := lease.ParseName(lock)
	if err != nil {
		return lease.AcquireRequest{}, err
	}
	if c.Service == nil {
		return lease.AcquireRequest{}, fmt.Errorf("%w: lock: Client.Service is nil", ErrMisconfigured)
	}
	q := lease.AcquireRequest{
		Name:      n,
		TTL:       c.ttl(),
		Holder:    cmp.Or(c.Holder, process()),
		Metadata:  c.Metadata,
		MinHold:   roundUp(c.MinHold),
		LockDelay: roundUp(c.LockDelay),
	}
	if m := c.margin(); m < 0 || m >= c.ttl()/2 {
		return q, &lease.InvalidError{Field: "Margin", Reason: fmt.Sprintf("is %v, want less than half of the TTL, %v", m, c.ttl())}
	}
	if q.TTL >= time.Second && q.MinHold > q.TTL {
		return q, &lease.InvalidError{Field: "MinHold", Reason: fmt.Sprintf("is %v, want at most the TTL, %v", q.MinHold, q.TTL)}
	}
	return q, ours(q.Validate(lease.MaxTTL, lease.MaxLockDelay))
}

// fields are the names that the caller knows.
var fields = map[string]string{
	"ttl_ms": "TTL", "holder": "Holder", "metadata": "Metadata", "min_hold_ms": "MinHold", "lock_delay_ms": "LockDelay",
}

// ours names the field of an error as the caller does.
func ours(err error) error {
	var invalid *lease.InvalidError
	if errors.As(err, &invalid) && fields[invalid.Field] != "" {
		return &lease.InvalidError{Field: fields[invalid.Field], Reason: invalid.Reason}
	}
	return err
}

// under is the key under which the context of work has the lock that it is done
// under.
type under struct{ lock string }

// nested fails if ctx is that of work which is done under the lock: it would
// wait for its own end.
func (c *Client) nested(ctx context.Context, lock string) error {
	h, ok := ctx.Value(under{lock}).(*Held)
	if !ok || !same(h.client.Service, c.Service) || h.Err() != nil {
		return nil
	}
	return &lease.InvalidError{Field: "lock", Reason: fmt.Sprintf("%s is held already, by the work that asks for it", lock)}
}

func same(a, b lease.Service) bool {
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}
