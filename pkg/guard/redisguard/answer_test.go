package redisguard_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/redisguard"
)

func TestAnAnswerThatIsLostIsNeitherSuccessNorRefusal(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	var cut atomic.Bool
	proxied := redis.NewClient(&redis.Options{Addr: cutting(t, localtest.RedisForTest(t).Addr, &cut), MaxRetries: -1})
	t.Cleanup(func() { _ = proxied.Close() })
	if err := guard(proxied).Set(t.Context(), holding(5), key, "before"); err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	err := guard(proxied).Set(t.Context(), holding(6), key, "after")
	if err == nil || fence.Refused(err) {
		t.Errorf("got error %v, want one of the connection", err)
	}
	cut.Store(false)
	want(t, client, key, "after")
	if err := guard(proxied).Set(t.Context(), holding(6), key, "again"); err != nil { // the same token may repeat it
		t.Error(err)
	}
	want(t, client, key, "again")
}

// cutting returns the address of a proxy that, while cut is set, closes the
// connection in place of an answer.
func cutting(t *testing.T, addr string, cut *atomic.Bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				return
			}
			go func() {
				_, _ = io.Copy(out, in)
				_ = out.Close()
			}()
			go func() {
				defer in.Close()
				answer := make([]byte, 4<<10)
				for {
					n, err := out.Read(answer)
					if err != nil || cut.Load() {
						return
					}
					_, _ = in.Write(answer[:n])
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestWhatIsNoAnswerOfTheScriptIsNoSuccess(t *testing.T) {
	var answer any
	g := &redisguard.Guard{Do: func(context.Context, ...any) (any, error) { return answer, nil }}
	for _, answer = range []any{
		nil, "OK", int64(1), []any{}, []any{"OK"}, []any{nil}, []any{"done", 1, 2}, []any{"stale"}, []any{"stale", "1", order, "x"},
		[]any{"stale", "1", order, "5"}, []any{"stale", "1", "another", "6"}, []any{"other"}, []any{"other", nil}, []any{"again", 1},
		[]string{"stale"}, [][]byte{}, map[string]any{"done": 1}, []any{[]any{"done"}},
	} {
		if err := g.Set(t.Context(), holding(5), "key", "text"); err == nil || fence.Refused(err) {
			t.Errorf("%v: got error %v", answer, err)
		}
		if seen, err := g.Seen(t.Context(), "key"); err == nil {
			t.Errorf("%v: it has seen %v", answer, seen)
		}
		if answer != nil {
			if _, err := g.Prune(t.Context(), "key", time.Now()); err == nil {
				t.Errorf("%v: pruned", answer)
			}
		}
	}
	// Some clients return bytes, some arrays of another type.
	for _, answer = range []any{
		[]any{[]byte("stale"), []byte("1"), []byte(order), []byte("6")}, []string{"stale", "1", order, "6"},
		[][]byte{[]byte("stale"), []byte("7"), []byte(order), []byte("6")},
	} {
		var stale *fence.StaleError
		if err := g.Set(t.Context(), holding(5), "key", "text"); !errors.As(err, &stale) || stale.Seen != 6 || stale.Resource != "key" {
			t.Errorf("%v: got error %v, want that 5 is stale", answer, err)
		}
	}
	answer = []string{"other", "1", "b", "a"}
	var other *fence.OtherLockError
	if err := g.Set(t.Context(), holding(5), "key", "text"); !errors.As(err, &other) || other.Bound != "a, b" {
		t.Errorf("got error %v, want that it belongs to a and b", err)
	}
}

func TestAScriptThatIsSentTwiceRunsOnce(t *testing.T) {
	client := open(t)
	for name, c := range map[string]struct {
		between func(key string) error
		length  int64
		check   func(error) bool
	}{
		"with nothing in between": {func(string) error { return nil }, 1, func(err error) bool { return errors.Is(err, redisguard.ErrAnswerLost) }},
		"with a newer claim in between": {func(key string) error { return guard(client).Claim(t.Context(), holding(6), key) }, 1,
			func(err error) bool { return errors.Is(err, redisguard.ErrAnswerLost) }},
		"with a newer write in between": {func(key string) error {
			_, err := guard(client).Run(t.Context(), holding(6), "", []string{key})
			return err
		}, 1, func(err error) bool {
			var stale *fence.StaleError
			return errors.As(err, &stale) && !stale.NotApplied && strings.Contains(err.Error(), fence.Maybe)
		}},
	} {
		key := newKey(t, client)
		twice := resource{store: store{t, client}, key: key, between: func() {
			if err := c.between(key); err != nil {
				t.Error(err)
			}
		}}
		_, err := twice.guard().Run(t.Context(), holding(5), "return redis.call('RPUSH', KEYS[1], 'text')", []string{key})
		if n := client.LLen(t.Context(), key).Val(); !c.check(err) || n != c.length {
			t.Errorf("%s: %d entries and error %v", name, n, err)
		}
	}
}

func TestAGuardThatSendsOnceKnowsThatNothingWasChanged(t *testing.T) {
	client := open(t)
	key := newKey(t, client)
	g := guard(client)
	g.Once = true
	if err := g.Set(t.Context(), holding(6), key, "text"); err != nil {
		t.Fatal(err)
	}
	var stale *fence.StaleError
	if err := g.Set(t.Context(), holding(5), key, "late"); !errors.As(err, &stale) || !stale.NotApplied {
		t.Errorf("got error %v, want that it was not applied", err)
	}
}
