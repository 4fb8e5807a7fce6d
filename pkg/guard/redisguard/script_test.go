package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

func TestAScriptOfTheCallerSeesItsOwnKeysAndArguments(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	for script, want := range map[string]any{
		"return {#KEYS, KEYS[1], KEYS[2], #ARGV, ARGV[1], ARGV[2]}": []any{int64(2), key, "{" + key + "}b", int64(2), "one", "2"},
		"return 17":                       int64(17),
		"return 'text'":                   "text",
		"return {1, {2, 'three'}}":        []any{int64(1), []any{int64(2), "three"}},
		"return {}":                       []any{},
		"return redis.status_reply('UP')": "UP",
		"return nil":                      nil,
		"return false":                    nil,
		"return true":                     int64(1),
		"":                                nil,
		"-- nothing but a comment":        nil,
		"if #ARGV == 2 then return 'early' end return 'late'": "early",
	} {
		got, err := guard(client).Run(t.Context(), holding(5), script, []string{key, "{" + key + "}b"}, "one", 2)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, error %v, want %#v", script, got, err, want)
		}
	}
}

func TestAScriptThatFailsIsNeitherRefusedNorDone(t *testing.T) {
	client := open(t)
	for _, script := range []string{
		"error('no')", "return redis.error_reply('NO')", "return redis.pcall('INCR', KEYS[1])",
		"redis.call('INCR', KEYS[1])", "end return (", "return redis.call('GET', 'somewhere-else', 'x')",
	} {
		key := newKey(t, client)
		if err := guard(client).Set(t.Context(), holding(5), key, "text"); err != nil {
			t.Fatal(err)
		}
		got, err := guard(client).Run(t.Context(), holding(6), script, []string{key})
		if err == nil || got != nil || fence.Refused(err) {
			t.Errorf("%s: got %v, error %v", script, got, err)
		}
	}
	// What fails halfway has raised the fence before.
	key := newKey(t, client)
	if _, err := guard(client).Run(t.Context(), holding(6), "redis.call('SET', KEYS[1], 'half') error('no')", []string{key}); err == nil {
		t.Error("got no error")
	}
	want(t, client, key, "half")
	if err := guard(client).Set(t.Context(), holding(5), key, "late"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 5 is stale", err)
	}
}

func TestAScriptThatIsRefusedDoesNotRun(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	if err := guard(client).Set(t.Context(), holding(5), key, "1"); err != nil {
		t.Fatal(err)
	}
	incr := func(token fence.Token) error {
		_, err := guard(client).Run(t.Context(), holding(token), "return redis.call('INCR', KEYS[1])", []string{key})
		return err
	}
	if err := incr(4); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 4 is stale", err)
	}
	want(t, client, key, "1")
	if err := incr(5); err != nil {
		t.Error(err)
	}
	want(t, client, key, "2")
}

func TestAScriptThatRedisForgotIsSentAgain(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	g := guard(client)
	plain := g.Do
	sent := 0
	g.Do = func(ctx context.Context, args ...any) (any, error) {
		sent++
		a, err := plain(ctx, args...)
		if err != nil {
			err = fmt.Errorf("a client may wrap it: %w", err)
		}
		return a, err
	}
	for i, requests := range []int{2, 1, 2} {
		if requests == 2 {
			if err := client.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		sent = 0
		if err := g.Set(t.Context(), holding(5), key, i); err != nil || sent != requests {
			t.Errorf("write %d took %d requests, error %v, want %d", i, sent, err, requests)
		}
		want(t, client, key, fmt.Sprint(i))
	}
	if err := client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := guard(client).Set(t.Context(), holding(4), key, "late"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got error %v, want that 4 is stale", err)
	}
	// A script cannot pass its own error for that of Redis and run twice.
	sent = 0
	if _, err := g.Run(t.Context(), holding(5), "error('NOSCRIPT')", []string{key}); err == nil || sent > 2 {
		t.Errorf("got error %v after %d requests", err, sent)
	}
	sent = 0
	if _, err := g.Run(t.Context(), holding(5), "error('NOSCRIPT')", []string{key}); err == nil || sent != 1 {
		t.Errorf("got error %v after %d requests, want one", err, sent)
	}
}
