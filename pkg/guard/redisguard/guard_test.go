package redisguard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/redisguard"
)

const order = "payments/orders/42"

func holding(token fence.Token) fence.Holding { return fence.Holding{Lock: order, Token: token} }

func guard(client *redis.Client) *redisguard.Guard { return &redisguard.Guard{Do: through(client)} }

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
	if _, err := guard(client).Run(t.Context(), holding(5), "return redis.call('SET', KEYS[1], 'text', 'EX', 1000)", []string{key}); err != nil {
		t.Fatal(err)
	}
	own, err := redisguard.FenceKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if ttl, err := client.PTTL(t.Context(), own).Result(); ttl != -1 || err != nil {
		t.Errorf("the fence lives for %v, error %v, want for ever", ttl, err)
	}
	if err := guard(client).Set(t.Context(), holding(5), key, "text"); err != nil {
		t.Fatal(err)
	}
	if ttl, err := client.PTTL(t.Context(), key).Result(); ttl != -1 || err != nil {
		t.Errorf("the data lives for %v, error %v, want for ever", ttl, err)
	}
}

// Whichever key comes first, and whoever wrote to the others.
func TestEveryKeyOfAScriptIsGuarded(t *testing.T) {
	client := open(t)
	tag := newKey(t, client)
	keys := []string{"{" + tag + "}a", "{" + tag + "}b"}
	t.Cleanup(func() {
		for _, k := range keys {
			own, _ := redisguard.FenceKey(k)
			client.Del(context.WithoutCancel(t.Context()), k, own)
		}
	})
	const both = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[1])"
	g := guard(client)
	if err := g.Set(t.Context(), holding(6), keys[1], "six"); err != nil {
		t.Fatal(err)
	}
	for _, order := range [][]string{{keys[0], keys[1]}, {keys[1], keys[0]}} {
		var stale *fence.StaleError
		if _, err := g.Run(t.Context(), holding(5), both, order, "five, late"); !errors.As(err, &stale) || stale.Resource != keys[1] {
			t.Errorf("%q: got error %v, want that 5 is stale for %s", order, err, keys[1])
		}
	}
	want(t, client, keys[1], "six")
	if client.Exists(t.Context(), keys[0]).Val() != 0 {
		t.Error("the first key was written")
	}
	if _, err := g.Run(t.Context(), holding(7), both, keys, "seven"); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := g.Set(t.Context(), holding(6), key, "late"); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: got error %v, want that 6 is stale", key, err)
		}
	}
	if err := g.Claim(t.Context(), holding(8), keys...); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if seen, err := g.Seen(t.Context(), key); err != nil || seen[order] != 8 {
			t.Errorf("%s has seen %v, error %v, want 8", key, seen, err)
		}
	}
}

func TestManyKeysMayShareAFence(t *testing.T) {
	client := open(t)
	tag := newKey(t, client)
	keys := []string{"{" + tag + "}total", "{" + tag + "}lines"}
	g := guard(client)
	g.Fence = "{" + tag + "}fence"
	t.Cleanup(func() { _ = client.Del(context.WithoutCancel(t.Context()), append(keys, g.Fence)...) })
	if err := g.Set(t.Context(), holding(5), keys[0], "100"); err != nil {
		t.Fatal(err)
	}
	if err := g.Set(t.Context(), holding(4), keys[1], "late"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 4 is stale for the other key too", err)
	}
	if err := g.Set(t.Context(), holding(5), g.Fence, "text"); !errors.Is(err, fence.ErrNotApplied) {
		t.Errorf("the fence was overwritten: %v", err)
	}
	for _, keys := range [][]string{nil, {"a}b"}} {
		own := *g
		if keys != nil {
			own.Fence = ""
		}
		if _, err := own.Run(t.Context(), holding(5), "", keys); !errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("%q: got error %v, want ErrNotApplied", keys, err)
		}
	}
}

func TestRefusalsAreObservedAndNothingElse(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	if err := guard(client).Set(t.Context(), holding(5), key, "text"); err != nil {
		t.Fatal(err)
	}
	var observed []error
	observing := func(lock string, token fence.Token, locks ...string) error {
		g := guard(client)
		g.Locks, g.Observer = locks, func(_ context.Context, err error) { observed = append(observed, err) }
		return g.Set(t.Context(), fence.Holding{Lock: lock, Token: token}, key, "new")
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
}

func TestPruneLeavesWhatIsThereAndWhatIsNotItsOwn(t *testing.T) {
	client := open(t)
	kept, gone, odd := newKey(t, client), newKey(t, client), newKey(t, client)+"[*]"
	t.Cleanup(func() {
		own, _ := redisguard.FenceKey(odd)
		client.Del(context.WithoutCancel(t.Context()), own, "fence/"+gone+"x")
	})
	g := guard(client)
	for _, key := range []string{kept, gone, odd} {
		if err := g.Set(t.Context(), holding(5), key, "text"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(g.Delete(t.Context(), holding(5), gone), g.Delete(t.Context(), holding(5), odd)); err != nil {
		t.Fatal(err)
	}
	client.HSet(t.Context(), "fence/"+gone+"x", "\x00since", 1) // of nobody: no hash tag
	for prefix, n := range map[string]int{gone: 1, kept: 0, odd: 1} {
		if pruned, err := g.Prune(t.Context(), prefix, later()); pruned != n || err != nil {
			t.Errorf("%s: pruned %d, error %v, want %d", prefix, pruned, err, n)
		}
	}
	if err := g.Set(t.Context(), holding(4), kept, "late"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 4 is stale", err)
	}
	if client.Exists(t.Context(), "fence/"+gone+"x").Val() != 1 {
		t.Error("what is not the guard's was deleted")
	}
}

// A server of its own has its memory.
func TestWithoutMemoryANewerHolderIsNeitherRefusedNorRemembered(t *testing.T) {
	localtest.RedisForTest(t) // or there is none
	client := ownServer(t)
	g := guard(client)
	for _, key := range []string{"a", "b"} {
		if err := g.Set(t.Context(), holding(5), key, "text"); err != nil {
			t.Fatal(err)
		}
	}
	set := func(name, value string) {
		if err := client.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("maxmemory", "1")
	for name, err := range map[string]error{
		"claim": g.Claim(t.Context(), holding(6), "a"), "delete": g.Delete(t.Context(), holding(6), "a"), "set": g.Set(t.Context(), holding(6), "a", "six"),
	} {
		if err == nil || fence.Refused(err) {
			t.Errorf("%s: got error %v, want that there is no memory", name, err)
		}
	}
	want(t, client, "a", "text")
	if err := g.Delete(t.Context(), holding(4), "a"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 4 is stale", err)
	}
	if err := g.Delete(t.Context(), holding(5), "a"); err != nil { // who is known may make room
		t.Error(err)
	}
	// What the documentation warns of: such a policy makes the guard forget.
	set("maxmemory-policy", "allkeys-random")
	for range 1000 {
		_ = client.Set(t.Context(), "filler", "x", 0).Err() // which evicts
	}
	set("maxmemory", "0")
	if err := g.Set(t.Context(), holding(4), "b", "late"); err != nil {
		t.Errorf("got error %v: is the guard safe from eviction? Then say so", err)
	}
}
