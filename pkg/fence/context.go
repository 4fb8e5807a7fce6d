package fence

import "context"

type contextKey struct{}

// NewContext returns a context that carries the token of a lock, by its full
// name, to whatever writes on behalf of its holder: [Transport] sends it along,
// and [Handler] puts it into the context on the other side. A context carries
// one token; a second hides the first.
func NewContext(ctx context.Context, lock string, t Token) context.Context {
	return context.WithValue(ctx, contextKey{}, Holding{Lock: lock, Token: t})
}

// FromContext returns what [NewContext] put into ctx. Without that, the token is
// zero, which no guard accepts.
func FromContext(ctx context.Context) (lock string, t Token) {
	h := HoldingFrom(ctx)
	return h.Lock, h.Token
}

// HoldingFrom returns the same as one value, as guards take it.
func HoldingFrom(ctx context.Context) Holding {
	h, _ := ctx.Value(contextKey{}).(Holding)
	return h
}
