package localtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
)

// A Redis is a running Redis server.
type Redis struct {
	// Addr is its host and port.
	Addr string

	stop func() error // nil when somebody else runs it
}

// errNoRedis tells what to provide; a server that is there and fails is not this
// error.
var errNoRedis = errors.New("no Redis: set REDIS_ADDR to the host:port of one, " +
	"or install the package redis-server (go run ./localtest/stores does, as root on Debian)")

var redisForTest = sync.OnceValues(func() (*Redis, error) { return StartRedis(context.Background()) })

// RedisForTest returns the server that all tests of this test binary share; each
// test has keys of its own. The server ends with the binary. Where there is no
// Redis to be had it skips the test, but under CI it fails.
func RedisForTest(t testing.TB) *Redis {
	t.Helper()
	r, err := redisForTest()
	skipWithout(t, err, errNoRedis)
	return r
}

// StartRedis returns the Redis at the host:port in REDIS_ADDR, which must not ask
// for a password. Without one it starts redis-server from PATH. What it starts
// keeps everything in memory and runs until [Redis.Close] or the end of this
// process; ctx is for starting it.
func StartRedis(ctx context.Context) (*Redis, error) {
	r, err := startRedis(ctx, freePort)
	if err != nil {
		return nil, fmt.Errorf("localtest: %w", err)
	}
	return r, nil
}

// startRedis starts it on a port that pick thinks is free. Another program may
// take it first; then there is another port.
func startRedis(ctx context.Context, pick func() (int, error)) (*Redis, error) {
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		r := &Redis{Addr: addr}
		if _, err := r.processID(ctx); err != nil {
			return nil, fmt.Errorf("REDIS_ADDR=%s: %w", addr, err)
		}
		return r, nil
	}
	path, err := redisServer()
	if err != nil {
		return nil, err
	}
	return onFreePort(pick, func(port int) (*Redis, error) { return runRedis(ctx, path, port) })
}

func redisServer() (path string, err error) {
	if path, err = exec.LookPath("redis-server"); err != nil {
		return "", fmt.Errorf("%w (%w)", errNoRedis, err)
	}
	return path, nil
}

func findRedis(context.Context) error {
	if os.Getenv("REDIS_ADDR") != "" {
		return nil
	}
	_, err := redisServer()
	return err
}

func runRedis(ctx context.Context, path string, port int) (*Redis, error) {
	p, err := process.Start(exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no"))
	if err != nil {
		return nil, err
	}
	r := &Redis{Addr: fmt.Sprintf("127.0.0.1:%d", port), stop: sync.OnceValue(p.Stop)}
	waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = p.Ready(waiting, func(ctx context.Context) error {
		id, err := r.processID(ctx)
		if err == nil && id != p.Pid() {
			err = errors.New("another Redis has the port")
		}
		return err
	})
	if err != nil {
		_ = p.Stop() // err says why
		return nil, err
	}
	return r, nil
}

// processID asks the server who it is.
func (r *Redis) processID(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.Addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return 0, err
	}
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(conn)
	for first := ""; lines.Scan(); {
		if first == "" {
			if first = lines.Text(); !strings.HasPrefix(first, "$") {
				return 0, fmt.Errorf("not an answer to INFO: %q", first)
			}
		}
		if id, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			return strconv.Atoi(id)
		}
	}
	return 0, errors.Join(lines.Err(), errors.New("the answer to INFO has no process_id"))
}

// Close ends what StartRedis started. It is an error if that had ended by itself.
func (r *Redis) Close() error {
	if r.stop == nil {
		return nil
	}
	if err := r.stop(); err != nil {
		return fmt.Errorf("localtest: %w", err)
	}
	return nil
}
