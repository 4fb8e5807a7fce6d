package localtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a program that we started and that does not outlive us.
type process struct {
	name   string
	grace  time.Duration // how long it has to end when asked to
	output tail          // standard output and error
	cmd    *exec.Cmd
	group  *group
	exited chan struct{} // closed when its whole group is gone
	err    error         // how it ended; valid once exited is closed
}

// start runs cmd in a process group of its own. The command after, if there is
// one, runs when the process has ended or when we have, whichever is first.
func start(cmd *exec.Cmd, after ...string) (*process, error) {
	g, err := newGroup(after...)
	if err != nil {
		return nil, err
	}
	p := &process{
		name:   filepath.Base(cmd.Path),
		grace:  5 * time.Second,
		cmd:    cmd,
		group:  g,
		exited: make(chan struct{}),
	}
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	cmd.WaitDelay = time.Second // a grandchild may hold the output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id()}
	if err := cmd.Start(); err != nil {
		g.end()
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		g.end()
		close(p.exited)
	}()
	return p, nil
}

// run starts cmd, waits until it ends and returns what it printed last.
func run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	p, err := start(cmd)
	if err != nil {
		return "", err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		_ = p.stop() // it has not failed, we gave up
		return "", fmt.Errorf("%s: %w", p.name, context.Cause(ctx))
	}
	if p.err != nil {
		return "", p.ended()
	}
	return strings.TrimSpace(p.output.String()), nil
}

// ready calls check until it succeeds, the process ends or ctx does.
func (p *process) ready(ctx context.Context, check func(context.Context) error) error {
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // whoever answers slowly now is somebody else
		select {
		case <-p.exited:
			cancel()
		case <-checking.Done():
		}
	}()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := check(checking)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w: %s", p.name, context.Cause(ctx), err, &p.output)
		case <-again.C:
		}
	}
}

// stop asks the process to end, kills it if it does not, and returns when it is
// gone. It is an error if it had ended before it was asked.
func (p *process) stop() error {
	if p.hasExited() {
		return p.ended()
	}
	p.group.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(p.grace):
		_ = p.cmd.Process.Kill() // fails only if it has just ended
		<-p.exited
	}
	return nil
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// ended tells how a process that has exited came to that, in its own words.
func (p *process) ended() error {
	how := p.err
	if how == nil {
		how = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w: %s", p.name, how, &p.output)
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
