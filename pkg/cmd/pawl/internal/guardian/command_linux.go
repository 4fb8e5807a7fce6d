package guardian

import (
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Command is guarded by another process. Its methods are safe for concurrent use.
type Command struct {
	process *exec.Cmd
	mu      sync.Mutex // of orders
	orders  *os.File
	answers *os.File
}

// Start starts the guarding process, which is this program again. The command
// itself begins with the first [Command.Extend].
func Start(command, env []string) (*Command, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	answers, w, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, err
	}
	defer w.Close()
	c := &Command{process: exec.Command(self, append([]string{Argument}, command...)...), orders: orders, answers: answers}
	if i, err := os.Stdin.Stat(); err == nil && i.Mode()&os.ModeCharDevice == 0 {
		c.process.Stdin = os.Stdin // from a terminal a process in the background may not read
	}
	c.process.Stdout, c.process.Stderr, c.process.Env = os.Stdout, os.Stderr, env
	c.process.ExtraFiles = []*os.File{r, w}
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what stops our group does not stop it
	return c, c.process.Start()
}

// Extend has the command killed at that time, and asked to end by SIGTERM for
// grace before it.
func (c *Command) Extend(kill time.Time, grace time.Duration) {
	boot := sinceBoot() // first: a pause here can only make it earlier
	c.send(order{Kill: boot + int64(remaining(kill)), Grace: int64(grace)})
}

// Signal passes a signal on to the group of the command.
func (c *Command) Signal(s syscall.Signal) { c.send(order{Signal: int(s)}) }

func (c *Command) send(o order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = json.NewEncoder(c.orders).Encode(o) // Wait tells that it has died
}

// Kill kills the guarding process, the command, and all that it started.
func (c *Command) Kill() { killAll() }

// Wait waits until nothing of the command is left.
func (c *Command) Wait() (Outcome, error) {
	var r report
	err := json.NewDecoder(c.answers).Decode(&r)
	if err != nil {
		err = ErrDied
	}
	killAll() // what a dead guardian has left behind became ours
	_ = c.process.Wait()
	return Outcome(r), err
}
