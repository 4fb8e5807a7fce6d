//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// TestMain lets the test binary be pawl, the real one.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_IS_PAWL") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A world is a service that can be cut off from pawl, and not from the test.
type world struct {
	url   string
	cut   atomic.Bool
	locks *lock.Client
}

func newWorld(t *testing.T) *world {
	store := new(memlease.Store)
	w := &world{locks: &lock.Client{Service: store, TTL: 2 * time.Second}}
	handler := &httplease.Handler{Service: store, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
	s := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		if w.cut.Load() {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(a, r)
	}))
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

func (w *world) pawl(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TEST_IS_PAWL=1", "PAWL_URL="+w.url)
	return cmd
}

func code(t *testing.T, err error) int {
	t.Helper()
	if e := new(exec.ExitError); errors.As(err, &e) {
		return e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestExitCodesComeThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for script, want := range map[string]int{
		"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -9 $$": 137, "kill -15 $$": 143,
		`test "$PAWL_LOCK:$PAWL_FENCING_TOKEN" != test/it:`: 0, "exec /nonexistent": 127,
	} {
		out, err := w.pawl("run", "test/it", "--", "sh", "-c", script).CombinedOutput()
		if got := code(t, err); got != want {
			t.Errorf("%s: exit code %d, want %d: %s", script, got, want, out)
		}
	}
	h, err := w.locks.TryAcquire(t.Context(), "test/it") // the lock was free at once each time
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release(context.Background())
	for want, args := range map[int][]string{
		held:     {"run", "test/it", "--", "true"},
		timedOut: {"run", "test/it", "--wait", "300ms", "--", "true"},
		127:      {"run", "test/other", "--", "no-such-command"},
		126:      {"run", "test/other", "--", "/etc/passwd"},
		misuse:   {"run", "test/it", "--ttl", "1ms", "--", "true"},
	} {
		out, err := w.pawl(args...).CombinedOutput()
		if got := code(t, err); got != want {
			t.Errorf("%q: exit code %d, want %d: %s", args, got, want, out)
		}
	}
}

func TestInputOutputAndSignalsPassThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := w.pawl("run", "test/it", "--", "sh", "-c", "trap 'echo got; exit 9' TERM; cat; echo ready; while :; do sleep 0.05; done")
	cmd.Stdin = strings.NewReader("hello\n")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	for heard := ""; !strings.Contains(heard, "hello\nready\n"); {
		n, err := out.Read(b)
		if heard += string(b[:n]); err != nil {
			t.Fatalf("heard %q, then %v", heard, err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	n, _ := out.Read(b)
	if got := code(t, cmd.Wait()); got != 9 || string(b[:n]) != "got\n" {
		t.Errorf("exit code %d and %q, want the trap's 9", got, b[:n])
	}
}

// worker ignores SIGTERM, and so does its grandchild in a session of its own. All
// of them write down when they were last alive.
const worker = `trap '' TERM; live() { while :; do date +%s%N > "$1.new"; mv "$1.new" "$1"; sleep 0.02; done; }
if [ -n "$DEEP" ]; then live "$DIR/deep"; fi
DEEP=1 setsid sh "$0" & live "$DIR/child"`

func TestNothingOfTheCommandIsLeftWhenTheNextIsGrantedTheLock(t *testing.T) {
	for name, fault := range map[string]func(*testing.T, *world, *exec.Cmd){
		"network cut":     func(_ *testing.T, w *world, _ *exec.Cmd) { w.cut.Store(true) },
		"wrapper stopped": func(t *testing.T, _ *world, c *exec.Cmd) { send(t, c.Process.Pid, syscall.SIGSTOP) },
		"wrapper killed":  func(t *testing.T, _ *world, c *exec.Cmd) { send(t, c.Process.Pid, syscall.SIGKILL) },
		"guardian killed": func(t *testing.T, _ *world, c *exec.Cmd) { send(t, childOf(t, c.Process.Pid), syscall.SIGKILL) },
		"guardian and network": func(t *testing.T, w *world, c *exec.Cmd) {
			send(t, childOf(t, c.Process.Pid), syscall.SIGSTOP)
			w.cut.Store(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, dir := newWorld(t), t.TempDir()
			script := filepath.Join(dir, "worker")
			if err := os.WriteFile(script, []byte(worker), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := w.pawl("run", "test/it", "--ttl", "2s", "--", "sh", script)
			cmd.Env = append(cmd.Env, "DIR="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL) // a stopped one
				_ = cmd.Wait()                                     // its code is not the subject
			}()
			for lastSign(dir, "child") == 0 || lastSign(dir, "deep") == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			fault(t, w, cmd)
			h, err := w.locks.Acquire(t.Context(), "test/it")
			if err != nil {
				t.Fatal(err)
			}
			granted := time.Now()
			time.Sleep(200 * time.Millisecond) // they would write meanwhile
			for _, who := range []string{"child", "deep"} {
				before := granted.Sub(time.Unix(0, lastSign(dir, who)))
				if t.Logf("%s was last alive %v before the grant", who, before); before <= 0 {
					t.Errorf("%s was alive %v before the grant of the next", who, before)
				}
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func send(t *testing.T, pid int, s syscall.Signal) {
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

func childOf(t *testing.T, pid int) int {
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func lastSign(dir, who string) int64 {
	b, _ := os.ReadFile(filepath.Join(dir, who)) // not there yet
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}
