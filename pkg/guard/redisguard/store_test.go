package redisguard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

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
	return resource{s, newKey(s, s.client), locks}, nil
}

func (s store) Reopen(_ context.Context, r guardtest.Resource) (guardtest.Resource, error) {
	again := r.(resource)
	again.client = open(s)
	return again, nil
}

type resource struct {
	store
	key   string
	locks []string
}

func (r resource) guard(lock string, token fence.Token) redisguard.Guard {
	return redisguard.Guard{Do: through(r.client), Lock: lock, Token: token, Locks: r.locks}
}

func (r resource) Write(ctx context.Context, lock string, token fence.Token, text string) error {
	return r.guard(lock, token).Set(ctx, r.key, text)
}

func (r resource) Claim(ctx context.Context, lock string, token fence.Token) error {
	return r.guard(lock, token).Claim(ctx, r.key)
}

func (r resource) Delete(ctx context.Context, lock string, token fence.Token) error {
	return r.guard(lock, token).Delete(ctx, r.key)
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
