package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process is a program that was started here.
type Process struct {
	name   string
	grace  time.Duration // how long it has to end when asked to
	output tail          // what it printed and nobody else takes
	cmd    *exec.Cmd
	group  *group
	exited chan struct{} // closed when its whole group is gone
	err    error         // how it ended; valid once exited is closed
}

// Start runs cmd in a process group of its own. The command after, if there is
// one, runs when the process has ended or when we have, whichever is first. Of
// its output, what cmd does not send elsewhere is kept for errors.
func Start(cmd *exec.Cmd, after ...string) (*Process, error) {
	g, err := newGroup(after...)
	if err != nil {
		return nil, err
	}
	p := &Process{
		name:   filepath.Base(cmd.Path),
		grace:  5 * time.Second,
		cmd:    cmd,
		group:  g,
		exited: make(chan struct{}),
	}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.output
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.output
	}
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

// Run starts cmd, waits until it ends and returns what it printed last.
func Run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	p, err := Start(cmd)
	if err != nil {
		return "", err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		_ = p.Stop() // it has not failed, we gave up
		return "", fmt.Errorf("%s: %w", p.name, context.Cause(ctx))
	}
	if p.err != nil {
		return "", p.Ended()
	}
	return p.Output(), nil
}

// Ready calls check until it succeeds, the process ends or ctx does.
func (p *Process) Ready(ctx context.Context, check func(context.Context) error) error {
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
			return p.Ended()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w: %s", p.name, context.Cause(ctx), err, &p.output)
		case <-again.C:
		}
	}
}

// Pid is the id of the program itself.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Output is the end of what the program printed and nobody else took.
func (p *Process) Output() string { return p.output.String() }

// Signal sends s to every process of the group, as a terminal does.
func (p *Process) Signal(s syscall.Signal) {
	if !p.HasExited() {
		p.group.signal(s)
	}
}

// Pause stops the program itself until Resume, so that it does nothing at all. It
// can still be killed.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a program go on that was paused, or paused itself.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Stop asks the process to end, kills it if it does not, and returns when it is
// gone. It is an error if it had ended before it was asked.
func (p *Process) Stop() error {
	if p.HasExited() {
		return p.Ended()
	}
	p.group.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(p.grace):
		p.Kill()
		<-p.exited
	}
	return nil
}

// Kill ends the whole group at once. It does not wait until that is gone.
func (p *Process) Kill() { p.group.kill() }

// Exited returns a channel that is closed when the whole group is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// HasExited reports whether the whole group is gone.
func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// State tells how a process that has exited ended.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Ended tells how a process that has exited came to that, in its own words.
func (p *Process) Ended() error {
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
