package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/redisguard"
)

// A holder that was replaced is told so, and stops.
func Example() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "redis:6379"})
	var token fence.Token // of the lease

	guard := redisguard.Guard{
		Do:        func(ctx context.Context, args ...any) (any, error) { return client.Do(ctx, args...).Result() },
		Lock:      "payments/orders/42",
		Token:     token,
		OnRefusal: fence.LogRefusals(slog.Default()),
	}
	// From here on the holder before is refused, so that what is read stays.
	if err := guard.Claim(ctx, "orders:42"); err != nil {
		fmt.Println("stop", err)
		return
	}
	err := guard.Set(ctx, "orders:42", "shipped")
	switch {
	case errors.Is(err, fence.ErrStale):
		fmt.Println("somebody else holds the lock: stop", err)
	case err != nil:
		fmt.Println("unknown: the same write with the same token may be repeated", err)
	}
}

// The write may be any script. It sees its own keys and arguments, and runs only
// if the token is accepted.
func ExampleGuard_Run() {
	guard := redisguard.Guard{Do: exampleRedis(), Lock: "payments/orders/42", Token: 34}
	keys := []string{"{orders:42}total", "{orders:42}lines"} // one hash slot
	total, err := guard.Run(context.Background(), `
		redis.call('RPUSH', KEYS[2], ARGV[1])
		return redis.call('INCRBY', KEYS[1], ARGV[2])
	`, keys, "two books", 30)
	fmt.Println(total, err)
}

// Tokens may come from whatever only grows, up to [fence.Max]. Lock then names
// what the counter counts.
func ExampleGuard_tokensFromElsewhere() {
	ctx := context.Background()
	for _, source := range []struct {
		name   string
		number int64
	}{
		{"the create revision of a key in etcd", 1_234_567}, // mutex.Header().Revision
		{"a counter in Redis", 1_234_568},                   // client.Incr(ctx, "orders:42:token").Val()
		{"the clock in nanoseconds", 1_785_000_000_000_000_000},
	} {
		guard := redisguard.Guard{Do: exampleRedis(), Lock: "payments/orders/42", Token: fence.Token(source.number)}
		fmt.Printf("%s: %v\n", source.name, guard.Set(ctx, "orders:42", source.name))
	}
	// Output:
	// the create revision of a key in etcd: <nil>
	// a counter in Redis: <nil>
	// the clock in nanoseconds: invalid fencing token: 1785000000000000000, want 1 to 999999999999999
}

// exampleRedis accepts everything, so that the examples need no server.
func exampleRedis() redisguard.Do {
	return func(context.Context, ...any) (any, error) { return []any{"done", "OK"}, nil }
}
