package redisguard_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

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
	if err := holder(proxied, 5).Set(t.Context(), key, "before"); err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	err := holder(proxied, 6).Set(t.Context(), key, "after")
	if err == nil || errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrOtherLock) || errors.Is(err, fence.ErrInvalid) {
		t.Errorf("got error %v, want one of the connection", err)
	}
	cut.Store(false)
	want(t, client, key, "after")
	if err := holder(proxied, 6).Set(t.Context(), key, "again"); err != nil { // the same token may repeat it
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
	for _, answer := range []any{nil, "OK", int64(1), []any{}, []any{"OK"}, []any{nil}, []any{"stale", order, "x"}} {
		g := redisguard.Guard{Lock: order, Token: 5, Do: func(context.Context, ...any) (any, error) { return answer, nil }}
		if err := g.Set(t.Context(), "key", "text"); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%v: got error %v", answer, err)
		}
	}
	// Some clients return bytes.
	g := redisguard.Guard{Lock: order, Token: 5, Do: func(context.Context, ...any) (any, error) {
		return []any{[]byte("stale"), []byte(order), []byte("6")}, nil
	}}
	var stale *fence.StaleError
	if err := g.Set(t.Context(), "key", "text"); !errors.As(err, &stale) || stale.Seen != 6 {
		t.Errorf("got error %v, want that 5 is stale", err)
	}
}
