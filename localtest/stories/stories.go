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
	"strings"
	"syscall"
	"time"

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
	first, err := start(ctx, "worker-1", out, env)
	if err != nil {
		return nil, err
	}
	defer first.kill()
	if err := first.pause(); err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "worker-1 is paused in the middle of its write; its lease runs out")
	second, err := start(ctx, "worker-2", out, env)
	if err != nil {
		return nil, err
	}
	defer second.kill()
	if err := second.finish(); err != nil {
		return nil, fmt.Errorf("stories: worker-2: %w", err)
	}
	fmt.Fprintln(out, "worker-2 is done; worker-1 wakes up, and its write goes out")
	return first.finish(), nil
}

// A process is a worker, seen from outside.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	out   io.Writer
	fail  strings.Builder
}

func start(ctx context.Context, name string, out io.Writer, env []string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self), out: out}
	p.cmd.Env = append(append(os.Environ(), env...), envName+"="+name)
	p.cmd.Stderr = &p.fail
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(stdout)
	return p, p.cmd.Start()
}

// pause waits until the worker is about to write, and stops it.
func (p *process) pause() error {
	if !p.tell() {
		return errors.Join(errors.New("stories: worker-1 ended before its write: "+p.fail.String()), p.cmd.Wait())
	}
	return p.cmd.Process.Signal(syscall.SIGSTOP)
}

// tell passes on what the worker says until it is about to write, and reports
// false if it ended before.
func (p *process) tell() bool {
	for p.lines.Scan() {
		if p.lines.Text() == atTheWrite {
			return true
		}
		fmt.Fprintln(p.out, p.lines.Text())
	}
	return false
}

// finish lets the worker write and end.
func (p *process) finish() error {
	_, _ = io.WriteString(p.in, "\n") // it may have ended
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	for p.tell() {
		_, _ = io.WriteString(p.in, "\n")
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s", strings.TrimSpace(p.fail.String()))
	}
	return nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill() } // it has ended, as a rule
