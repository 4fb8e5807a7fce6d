package lease

import (
	"context"
	"time"
)

// A Call is what the transport knows of the call that a [Service] is serving,
// and what the service tells the transport of its cost. It belongs to one
// goroutine at a time.
type Call struct {
	// Principal is who calls, as the gateway authenticated them. It is recorded
	// with a grant, and a grant is repeated to its principal only.
	Principal string

	// Received is when the gateway received the call, by its own clock. Zero
	// means unknown, and that no clock is checked against it.
	Received time.Time

	// Requests counts the requests made to the store for this call, those that
	// failed and were repeated included.
	Requests int

	// StoreTime is how long those requests took.
	StoreTime time.Duration
}

type callKey struct{}

// WithCall returns a context in which services find c.
func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallFrom returns the call of ctx, or an anonymous one.
func CallFrom(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return new(Call)
}
