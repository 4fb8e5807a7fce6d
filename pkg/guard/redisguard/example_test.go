package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/redisguard"
)

// orders guards the keys of orders.
func orders(client *redis.Client) *redisguard.Guard {
	return &redisguard.Guard{
		Do:       func(ctx context.Context, args ...any) (any, error) { return client.Do(ctx, args...).Result() },
		Observer: fence.LogRefusals(slog.Default()),
	}
}

// A holder that was replaced is told so, and stops.
func Example() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR"), MaxRetries: -1})
	defer client.Close()
	guard := orders(client)
	guard.Once = true // as MaxRetries says

	older := fence.Holding{Lock: "payments/orders/42", Token: 33} // lock.Held.Holding
	newer := fence.Holding{Lock: "payments/orders/42", Token: 34}
	// From here on the holder before is refused, so that what is read stays.
	if err := guard.Claim(ctx, newer, "orders:42"); err != nil {
		fmt.Println("stop:", err)
		return
	}
	for _, h := range []fence.Holding{newer, older} {
		switch err := guard.Set(ctx, h, "orders:42", "shipped"); {
		case errors.Is(err, fence.ErrStale):
			fmt.Println("stop:", err)
		case err != nil:
			fmt.Println("unknown: the same write by the same holder may be repeated:", err)
		default:
			fmt.Println("shipped by", h.Token)
		}
	}
	// shipped by 34
	// stop: stale fencing token: orders:42 has seen 34 of "payments/orders/42", and was sent 33
}

// The write may be any script. It sees its own keys and arguments, and runs only
// if the guard of each key accepts the token.
func ExampleGuard_Run() {
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	defer client.Close()
	h := fence.Holding{Lock: "payments/orders/43", Token: 34}
	keys := []string{"{orders:43}total", "{orders:43}lines"} // one hash slot
	total, err := orders(client).Run(context.Background(), h, `
		redis.call('RPUSH', KEYS[2], ARGV[1])
		return redis.call('INCRBY', KEYS[1], ARGV[2])
	`, keys, "two books", 30)
	fmt.Println(total, err)
	// 30 <nil>
}

// Tokens may come from whatever only grows, up to [fence.Max]. Lock then names
// what the counter counts.
func ExampleGuard_tokensFromElsewhere() {
	for _, source := range []struct {
		name   string
		number int64
	}{
		{"the create revision of a key in etcd", 1_234_567}, // mutex.Header().Revision
		{"a counter in Redis", 1_234_568},                   // client.Incr(ctx, "orders:42:token").Val()
		{"the clock in nanoseconds", 1_785_000_000_000_000_000},
	} {
		h := fence.Holding{Lock: "payments/orders/42", Token: fence.Token(source.number)}
		fmt.Printf("%s: %v\n", source.name, h.Check())
	}
	// Output:
	// the create revision of a key in etcd: <nil>
	// a counter in Redis: <nil>
	// the clock in nanoseconds: invalid fencing token: 1785000000000000000 of "payments/orders/42", want 1 to 999999999999999
}

// The examples need a server, so it is a test that runs them.
func TestTheExamplesDoWhatTheySay(t *testing.T) {
	client := open(t)
	clean := func() {
		client.Del(context.Background(), "orders:42", "fence:{orders:42}", "{orders:43}total", "{orders:43}lines",
			"fence/{orders:43}total", "fence/{orders:43}lines")
	}
	clean()
	t.Cleanup(clean)
	t.Setenv("REDIS_ADDR", localtest.RedisForTest(t).Addr)
	const first = "shipped by 34\nstop: stale fencing token: orders:42 has seen 34 of \"payments/orders/42\", and was sent 33\n"
	for want, run := range map[string]func(){first: Example, "30 <nil>\n": ExampleGuard_Run} {
		if got := printed(t, run); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
}

func printed(t *testing.T, run func()) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	run()
	os.Stdout = stdout
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
