package fence

import (
	"context"
	"fmt"
)

type contextKey struct{}

// NewContext returns a context that carries a holding to whatever writes on behalf
// of its holder: [Transport] sends it along, and [Handler] puts it into the context
// on the other side. A context carries one; a second hides the first, and the zero
// Holding says that what is called is to be nobody's write.
func NewContext(ctx context.Context, h Holding) context.Context {
	return context.WithValue(ctx, contextKey{}, h)
}

// HoldingFrom returns what [NewContext] put into ctx. Without that it is the zero
// Holding, which no guard accepts.
func HoldingFrom(ctx context.Context) Holding {
	h, _ := ctx.Value(contextKey{}).(Holding)
	return h
}

// HeaderFrom returns the value of [Header] for the holding that ctx carries, or ""
// if it carries none at all. It fails with [ErrInvalid] for the zero Holding, which
// would send a write unguarded, and for one of several locks, of which a header has
// one.
func HeaderFrom(ctx context.Context) (string, error) {
	if ctx.Value(contextKey{}) == nil {
		return "", nil
	}
	h := HoldingFrom(ctx)
	if len(h.With) > 0 {
		return "", fmt.Errorf("%w: %s carries one lock, and the context has %d", ErrInvalid, Header, 1+len(h.With))
	}
	value, err := FormatHeader(h.Lock, h.Token)
	if err != nil {
		return "", fmt.Errorf("the context has no holding to send: %w", err)
	}
	return value, nil
}
