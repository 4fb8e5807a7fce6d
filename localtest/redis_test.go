package localtest

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ownRedis starts a Redis that no other test uses.
func ownRedis(t *testing.T) *Redis {
	t.Helper()
	t.Setenv("REDIS_ADDR", "")
	r, err := StartRedis(t.Context())
	skipWithout(t, err, errNoRedis)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRedisRunsUntilItIsClosed(t *testing.T) {
	r := ownRedis(t)
	if _, err := r.processID(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.processID(t.Context()); err == nil {
		t.Error("it still answers")
	}
}

func TestTheRedisThatIsNamedIsUsedAndNotEnded(t *testing.T) {
	own := ownRedis(t)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REDIS_ADDR", own.Addr)
	r, err := StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil || r.Addr != own.Addr {
		t.Errorf("got %s, error %v, want %s", r.Addr, err, own.Addr)
	}
	if _, err := own.processID(t.Context()); err != nil {
		t.Errorf("it was ended: %v", err)
	}
}

func TestTheRedisThatIsNamedIsNotReplaced(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // it answers, as something else
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("-NOAUTH Authentication required.\r\n"))
			_ = c.Close()
		}
	}()
	for addr, want := range map[string]string{"127.0.0.1:1": "refused", l.Addr().String(): "NOAUTH"} {
		t.Setenv("REDIS_ADDR", addr)
		_, err = StartRedis(t.Context())
		if err == nil || errors.Is(err, errNoRedis) || !strings.Contains(err.Error(), "REDIS_ADDR="+addr) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", addr, err, want)
		}
	}
}

func TestAPortThatAnotherRedisHasIsNotUsed(t *testing.T) {
	other := ownRedis(t)
	_, port, _ := net.SplitHostPort(other.Addr)
	taken, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	picked := 0
	r, err := startRedis(t.Context(), func() (int, error) {
		if picked++; picked == 1 {
			return taken, nil
		}
		return freePort()
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Addr == other.Addr {
		t.Errorf("got %s, which is somebody else's", r.Addr)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestARedisServerThatFailsIsNotAMissingOne(t *testing.T) {
	bin := t.TempDir()
	writeFile(t, filepath.Join(bin, "redis-server"), "#!/bin/sh\necho out of order\nexit 1\n", 0o755)
	t.Setenv("PATH", bin)
	t.Setenv("REDIS_ADDR", "")
	_, err := StartRedis(t.Context())
	if err == nil || errors.Is(err, errNoRedis) || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("got error %v, want its own", err)
	}
}

func TestWithoutARedisTheErrorTellsWhatToProvide(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REDIS_ADDR", "")
	_, err := StartRedis(t.Context())
	if !errors.Is(err, errNoRedis) || !strings.Contains(err.Error(), "REDIS_ADDR") || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got error %v, want what to provide, and that it is not in PATH", err)
	}
}

func TestRedisIsGivenUpWithItsContext(t *testing.T) {
	bin := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(bin, "redis-server"), "#!/bin/sh\nexec "+sleep+" 1000\n", 0o755)
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	t.Setenv("REDIS_ADDR", "")
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := StartRedis(ctx); !errors.Is(err, over) {
		t.Errorf("got error %v, want %v", err, over)
	}
}
