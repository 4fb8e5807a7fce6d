package guardian

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Guard is the guarding process: it takes orders from file 3, runs the command,
// and reports to file 4 when nothing of the command is left.
func Guard(command []string) {
	runtime.LockOSThread() // the death of a parent, for the kernel, is that of its thread
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	orders, answers := os.NewFile(3, "orders"), os.NewFile(4, "answers")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	_ = json.NewEncoder(answers).Encode(guard(json.NewDecoder(orders), command)) // the keeper may be dead
}

func guard(orders *json.Decoder, command []string) report {
	var o order
	if err := adopt(); err != nil {
		return report{Code: 126, Error: err.Error()}
	}
	if err := orders.Decode(&o); err != nil || sinceBoot() >= o.Kill-o.Grace {
		return report{Ended: true} // too late to begin
	}
	signal.Reset(syscall.SIGHUP, syscall.SIGPIPE)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return report{Code: 127, Error: err.Error()}
	} else if err != nil {
		return report{Code: 126, Error: err.Error()}
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	next := make(chan order)
	go func() {
		defer close(next)
		for {
			var o order
			if orders.Decode(&o) != nil {
				return
			}
			next <- o
		}
	}()
	done := make(chan int)
	go func() { done <- reap(cmd.Process.Pid) }()
	ended := watch(o, next, done, cmd.Process.Pid)
	killAll() // before the lock is released
	return report{Code: ended.code, Ended: ended.early}
}

type ending struct {
	code  int
	early bool
}

// watch returns when the command has ended, or was killed.
func watch(o order, next <-chan order, done <-chan int, pid int) (e ending) {
	// Timers of Go stand still while the machine is suspended: look often.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e.code = <-done:
			return e
		case n, ok := <-next:
			switch {
			case !ok: // the keeper is dead: nobody extends any more
				next = nil
				o.Kill = min(o.Kill, sinceBoot()+o.Grace)
			case n.Signal != 0:
				_ = syscall.Kill(-pid, syscall.Signal(n.Signal)) // it may have ended
			case !e.early:
				o = n
			}
		case <-tick.C:
		}
		if now := sinceBoot(); now >= o.Kill {
			killAll()
			return ending{128 + int(syscall.SIGKILL), true}
		} else if now >= o.Kill-o.Grace && !e.early {
			e.early = true
			for _, p := range descendants() {
				_ = syscall.Kill(p, syscall.SIGTERM) // as above
				_ = syscall.Kill(p, syscall.SIGCONT) // a stopped one would not see it
			}
		}
	}
}

// reap waits for orphans too, until the command has ended.
func reap(pid int) int {
	for {
		var s syscall.WaitStatus
		p, err := syscall.Wait4(-1, &s, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || err == nil && p != pid:
		case err != nil:
			return 126
		case s.Signaled():
			return 128 + int(s.Signal())
		default:
			return s.ExitStatus()
		}
	}
}
