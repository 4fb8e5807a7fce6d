package redisguard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/guardtest"
	"github.com/pawl-lock/pawl/pkg/guard/redisguard"
)

// through makes a client what a guard needs.
func through(client *redis.Client) redisguard.Do {
	return func(ctx context.Context, args ...any) (any, error) { return client.Do(ctx, args...).Result() }
}

// open returns a client of the Redis that all tests share.
func open(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: localtest.RedisForTest(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// newKey returns a key that nobody uses, and deletes it and its fence at the end.
func newKey(t testing.TB, client *redis.Client) string {
	key := "pawl-test-" + rand.Text()
	t.Cleanup(func() {
		own, err := redisguard.FenceKey(key)
		if err = errors.Join(err, client.Del(context.WithoutCancel(t.Context()), key, own).Err()); err != nil {
			t.Error(err)
		}
	})
	return key
}

// store is a [guardtest.Store] of keys.
type store struct {
	testing.TB
	client *redis.Client
}

func (s store) New(_ context.Context, locks ...string) (guardtest.Resource, error) {
	return resource{store: s, key: newKey(s, s.client), locks: locks}, nil
}

func (s store) Reopen(_ context.Context, r guardtest.Resource, locks ...string) (guardtest.Resource, error) {
	again := r.(resource)
	again.client, again.locks = open(s), locks
	return again, nil
}

type resource struct {
	store
	key     string
	locks   []string
	between func()
	stopped func()
}

func (r resource) guard() *redisguard.Guard {
	return &redisguard.Guard{Do: r.do(), Locks: r.locks}
}

// do makes a client that loses an answer and sends again, or sleeps before it
// sends.
func (r resource) do() redisguard.Do {
	do := through(r.client)
	return func(ctx context.Context, args ...any) (any, error) {
		if r.stopped != nil {
			r.stopped()
		}
		answer, err := do(ctx, args...)
		if r.between != nil && (err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT")) {
			r.between()
			answer, err = do(ctx, args...)
		}
		return answer, err
	}
}

func (r resource) Write(ctx context.Context, h fence.Holding, text string) error {
	return r.guard().Set(ctx, h, r.key, text)
}

func (r resource) Claim(ctx context.Context, h fence.Holding) error {
	return r.guard().Claim(ctx, h, r.key)
}

func (r resource) Delete(ctx context.Context, h fence.Holding) error {
	return r.guard().Delete(ctx, h, r.key)
}

func (r resource) Seen(ctx context.Context) (map[string]fence.Token, error) {
	return r.guard().Seen(ctx, r.key)
}

func (r resource) Reset(ctx context.Context, h fence.Holding) error {
	return r.guard().Reset(ctx, h, r.key)
}

func (r resource) Prune(ctx context.Context, before time.Time) error {
	_, err := r.guard().Prune(ctx, r.key, before)
	return err
}

func (r resource) Twice(between func()) guardtest.Resource {
	r.between = between
	return r
}

func (r resource) Asleep(stopped func()) guardtest.Resource {
	r.stopped = stopped
	return r
}

func (r resource) Read(ctx context.Context) (string, bool, error) {
	text, err := r.client.Get(ctx, r.key).Result()
	if errors.Is(err, redis.Nil) {
		return "", false, nil
	}
	return text, err == nil, err
}

func TestRedisIsGuarded(t *testing.T) {
	guardtest.Run(t, func(t *testing.T) guardtest.Store { return store{t, open(t)} })
}

func TestTheGuardStandsTheHammer(t *testing.T) {
	guardtest.Hammer(t, func(t *testing.T) guardtest.Store { return store{t, open(t)} })
}

// later is after anything that a test has done.
func later() time.Time { return time.Now().Add(time.Hour) }

// ownServer returns a client of a Redis that no other test uses.
func ownServer(t *testing.T) *redis.Client {
	t.Helper()
	t.Setenv("REDIS_ADDR", "")
	server, err := localtest.StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
