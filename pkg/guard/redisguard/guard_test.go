package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/redisguard"
)

const order = "payments/orders/42"

func holder(client *redis.Client, token fence.Token) redisguard.Guard {
	return redisguard.Guard{Do: through(client), Lock: order, Token: token}
}

// want checks what a key holds.
func want(t *testing.T, client *redis.Client, key, value string) {
	t.Helper()
	if got, err := client.Get(t.Context(), key).Result(); got != value || err != nil {
		t.Errorf("%s is %q, error %v, want %q", key, got, err, value)
	}
}

func TestTheFenceNeverExpiresAndWhatIsSetDoesNot(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	if _, err := holder(client, 5).Run(t.Context(), "return redis.call('SET', KEYS[1], 'text', 'EX', 1000)", []string{key}); err != nil {
		t.Fatal(err)
	}
	own, err := redisguard.FenceKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if ttl, err := client.PTTL(t.Context(), own).Result(); ttl != -1 || err != nil {
		t.Errorf("the fence lives for %v, error %v, want for ever", ttl, err)
	}
	if err := holder(client, 5).Set(t.Context(), key, "text"); err != nil {
		t.Fatal(err)
	}
	if ttl, err := client.PTTL(t.Context(), key).Result(); ttl != -1 || err != nil {
		t.Errorf("the data lives for %v, error %v, want for ever", ttl, err)
	}
}

func TestAHolderOfSeveralLocksHasEachTokenCompared(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	const cart = "payments/carts/42"
	write := func(tokenOrder, tokenCart fence.Token) error {
		g := holder(client, tokenOrder)
		g.With = map[string]fence.Token{cart: tokenCart}
		return g.Set(t.Context(), key, fmt.Sprint(tokenOrder, tokenCart))
	}
	if err := write(100, 5); err != nil {
		t.Fatal(err)
	}
	var stale *fence.StaleError
	if err := write(100, 4); !errors.As(err, &stale) || *stale != (fence.StaleError{Lock: cart, Token: 4, Seen: 5, Resource: key}) {
		t.Errorf("got error %v, want that 4 of %s is stale", err, cart)
	}
	if err := write(99, 6); !errors.As(err, &stale) || *stale != (fence.StaleError{Lock: order, Token: 99, Seen: 100, Resource: key}) {
		t.Errorf("got error %v, want that 99 of %s is stale", err, order)
	}
	alone := redisguard.Guard{Do: through(client), Lock: cart, Token: 7, Locks: []string{order, cart, order}}
	if err := alone.Set(t.Context(), key, "alone"); err != nil {
		t.Error(err)
	}
	if err := write(100, 6); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 6 is stale", err)
	}
	alone.Locks = nil
	var other *fence.OtherLockError
	if err := alone.Set(t.Context(), key, "undeclared"); !errors.As(err, &other) || other.Bound != cart+", "+order {
		t.Errorf("got error %v, want that both locks must be declared", err)
	}
	want(t, client, key, "alone")
}

func TestManyKeysMayShareAFence(t *testing.T) {
	client := open(t)
	tag := newKey(t, client)
	keys := []string{"{" + tag + "}total", "{" + tag + "}lines"}
	g := holder(client, 5)
	g.Fence = "{" + tag + "}fence"
	t.Cleanup(func() { _ = client.Del(context.WithoutCancel(t.Context()), append(keys, g.Fence)...) })
	if err := g.Set(t.Context(), keys[0], "100"); err != nil {
		t.Fatal(err)
	}
	g.Token = 4
	if err := g.Set(t.Context(), keys[1], "late"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 4 is stale for the other key too", err)
	}
	g.Token = 5
	if err := g.Set(t.Context(), g.Fence, "text"); err == nil {
		t.Error("the fence was overwritten")
	}
	if _, err := g.Run(t.Context(), "", nil); err == nil {
		t.Error("no key at all was guarded")
	}
}

func TestRefusalsAreObservedAndNothingElse(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	if err := holder(client, 5).Set(t.Context(), key, "text"); err != nil {
		t.Fatal(err)
	}
	var observed []error
	observing := func(lock string, token fence.Token, locks ...string) error {
		g := redisguard.Guard{Do: through(client), Lock: lock, Token: token, Locks: locks}
		g.OnRefusal = func(_ context.Context, err error) { observed = append(observed, err) }
		return g.Set(t.Context(), key, "new")
	}
	for _, c := range []struct {
		err, want error
		seen      bool
	}{
		{observing(order, 4), fence.ErrStale, true},
		{observing("payments/carts/42", 5), fence.ErrOtherLock, true},
		{observing(order, 5, "payments/carts/42"), fence.ErrOtherLock, true},
		{observing(order, 0), fence.ErrInvalid, false},
		{observing(order, 5, order, ""), fence.ErrInvalid, false},
		{observing(order, 5), nil, false},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("got error %v, want %v", c.err, c.want)
		}
		if c.seen && (len(observed) == 0 || observed[0] != c.err) {
			t.Errorf("observed %v, want %v first", observed, c.err)
		}
		if c.seen {
			observed = observed[1:]
		}
	}
	if len(observed) > 0 {
		t.Errorf("observed %v as well", observed)
	}
	twice := holder(client, 5)
	twice.With = map[string]fence.Token{order: 6}
	if err := twice.Set(t.Context(), key, "new"); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("got error %v, want that there are two tokens of a lock", err)
	}
}
