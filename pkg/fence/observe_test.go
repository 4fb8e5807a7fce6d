package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
)

func TestAnObserverSeesRefusalsAndNothingElse(t *testing.T) {
	var seen []error
	o := Observer(func(_ context.Context, err error) { seen = append(seen, err) })
	stale := fmt.Errorf("ship: %w", &StaleError{Lock: "a/b", Token: 1, Seen: 2, Resource: "row"})
	other := &OtherLockError{Lock: "a/b", Bound: "a/c", Resource: "row"}
	for _, err := range []error{stale, nil, errors.New("timeout"), ErrInvalid, other} {
		if got := o.See(t.Context(), err); got != err {
			t.Errorf("got %v, want %v as it was", got, err)
		}
		if got := Observer(nil).See(t.Context(), err); got != err {
			t.Errorf("nobody sees: got %v, want %v as it was", got, err)
		}
	}
	for _, again := range []error{stale, other, fmt.Errorf("again: %w", fmt.Errorf("and again: %w", stale)), errors.Join(io.EOF, other)} {
		_ = o.See(t.Context(), again) // they have been seen
	}
	if len(seen) != 2 || seen[0] != stale || seen[1] != other {
		t.Errorf("saw %v", seen)
	}
}

func TestARefusalIsLoggedWithAllThatIsKnown(t *testing.T) {
	var out bytes.Buffer
	o := LogRefusals(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	o(t.Context(), fmt.Errorf("ship: %w", &StaleError{Lock: "payments/orders/42", Token: 33, Seen: 34, Resource: "orders/42"}))
	o(t.Context(), &OtherLockError{Lock: "payments/carts/42", Bound: "payments/orders/42", Resource: "orders/42", NotApplied: true})
	const want = `level=WARN msg="stale fencing token" exception=StaleFencingTokenException resource=orders/42 lock=payments/orders/42 token=33 seen=34 not_applied=false
level=WARN msg="fencing token of another lock" resource=orders/42 lock=payments/carts/42 bound=payments/orders/42 not_applied=true
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
