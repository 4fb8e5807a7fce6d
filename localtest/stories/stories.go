// Package stories tells what the fencing token is for, with real processes: a
// worker takes a lock over HTTP, is paused in the middle of its write for longer
// than its lease, and wakes up after another worker has taken over and finished.
//
// A story is told without the guard, where the late write destroys data, or with
// it, where the write is refused. That the first happens each time is what makes
// the second worth something. The pause is a SIGSTOP, so stories are for Linux
// and macOS.
package stories

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// A Story is a kind of work under a lock.
type Story struct {
	// Lock is the full name of the lock.
	Lock string

	// Work is done by each worker while it holds the lock. It calls pause where
	// it may be stopped: between its last look at anything and its write.
	Work func(ctx context.Context, w Worker, pause func()) error
}

// A Worker is who does the work.
type Worker struct {
	Name    string
	Held    *lock.Held
	Guarded bool
	Log     func(format string, args ...any)
}

// ttl is the shortest there is, so that a story is over soon.
const ttl = time.Second

// Environment of a worker process.
const (
	envName    = "STORY_WORKER"
	envService = "STORY_SERVICE"
	envGuarded = "STORY_GUARDED"
)

// IsWorker reports whether this process was started by [Story.Tell] as a worker.
// Then it should call [Story.Be] and nothing else.
func IsWorker() bool { return os.Getenv(envName) != "" }

// Be works as the worker that this process was started as.
func (s Story) Be(ctx context.Context) error {
	name := os.Getenv(envName)
	say := func(format string, args ...any) { fmt.Printf(name+": "+format+"\n", args...) }
	c := &lock.Client{Service: &httplease.Client{URL: os.Getenv(envService)}, TTL: ttl, Holder: name}
	h, err := c.Acquire(ctx, s.Lock)
	if err != nil {
		return err
	}
	defer h.Release(ctx)
	say("holds %s with token %d", s.Lock, h.Token())
	w := Worker{Name: name, Held: h, Guarded: os.Getenv(envGuarded) != "", Log: say}
	return s.Work(ctx, w, func() {
		fmt.Println(atTheWrite)
		// Whoever reads this has us stopped before we read on.
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	})
}

// atTheWrite is the line of a worker that is about to write.
const atTheWrite = "…"

// Tell tells the story to out: worker-1 is paused, worker-2 takes over and ends,
// worker-1 goes on. The workers are processes of this program, with env added to
// their environment. It returns what worker-1 came to: nil if it believes that
// all went well.
func (s Story) Tell(ctx context.Context, out io.Writer, guarded bool, env ...string) (late error, err error) {
	service := httptest.NewServer(&httplease.Handler{Service: new(memlease.Store), Log: discard, Caller: httplease.Anyone})
	defer service.Close()
	env = append(env, envService+"="+service.URL)
	if guarded {
		env = append(env, envGuarded+"=1")
	}
	first, err := start("worker-1", out, env)
	if err != nil {
		return nil, err
	}
	defer first.Kill()
	if err := errors.Join(first.hear(ctx), first.Pause()); err != nil {
		return nil, fmt.Errorf("stories: before its write: %w", err)
	}
	fmt.Fprintln(out, "worker-1 is paused in the middle of its write; its lease runs out")
	second, err := start("worker-2", out, env)
	if err != nil {
		return nil, err
	}
	defer second.Kill()
	if err := second.finish(ctx); err != nil {
		return nil, fmt.Errorf("stories: worker-2: %w", err)
	}
	fmt.Fprintln(out, "worker-2 is done; worker-1 wakes up, and its write goes out")
	return first.finish(ctx), nil
}

// A run is the process of a worker, seen from outside.
type run struct {
	*process.Talk
	out io.Writer
}

func start(name string, out io.Writer, env []string) (run, error) {
	self, err := os.Executable()
	if err != nil {
		return run{}, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), env...), envName+"="+name)
	p, err := process.StartTalk(cmd)
	return run{p, out}, err
}

// hear passes on what the worker says until it is about to write. It is an error
// if the worker ends before.
func (r run) hear(ctx context.Context) error {
	for {
		line, err := r.Hear(ctx)
		if err != nil || line == atTheWrite {
			return err
		}
		fmt.Fprintln(r.out, line)
	}
}

// finish lets the worker write and end, and returns what it says it failed with.
func (r run) finish(ctx context.Context) error {
	if err := r.Resume(); err != nil {
		return err
	}
	for {
		_ = r.Tell("") // it may have ended
		err := r.hear(ctx)
		switch {
		case err == nil:
		case !r.HasExited():
			return err
		case r.State().Success():
			return nil
		default:
			return errors.New(r.Output())
		}
	}
}
