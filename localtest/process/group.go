package process

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// A group is a process group that ends when we say so or, if we no longer can,
// when this process has died, in whatever way. Its leader is a shell that waits
// for the end of a pipe that only we hold open: the kernel closes it for us.
//
// Linux has a signal for this (Pdeathsig), but it comes when the thread that
// started the child ends, reaches no grandchildren, and macOS has none.
type group struct {
	leader *exec.Cmd
	alive  io.Closer
}

// newGroup starts a group. The command after, if there is one, runs at its end,
// before its processes are killed.
func newGroup(after ...string) (*group, error) {
	// The leader says when it is deaf to the signals that are for the others.
	const script = `trap "" HUP INT TERM; echo; read -r _; "$@" >/dev/null 2>&1; kill -s KILL 0`
	sh := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, after...)...)
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := sh.StdinPipe()
	if err != nil {
		return nil, err
	}
	deaf, err := sh.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := sh.Start(); err != nil {
		return nil, err
	}
	g := &group{leader: sh, alive: alive}
	if _, err := deaf.Read(make([]byte, 1)); err != nil {
		g.end()
		return nil, fmt.Errorf("process group: %w", err)
	}
	return g, nil
}

// id is nobody else's until end returns.
func (g *group) id() int { return g.leader.Process.Pid }

func (g *group) signal(s syscall.Signal) { _ = syscall.Kill(-g.id(), s) }

// kill has the leader kill the group, and itself. It may be called again.
func (g *group) kill() { _ = g.alive.Close() }

// end kills what is left of the group, and waits until it is gone.
func (g *group) end() {
	g.kill()
	_ = g.leader.Wait() // it has killed itself
}
