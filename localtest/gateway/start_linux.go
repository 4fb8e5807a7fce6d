package gateway

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter returns the channel of a goroutine that runs what it is sent on one
// operating system thread, for ever. Linux delivers the signal of Pdeathsig when
// the thread that started a process ends, not the program; an ordinary
// goroutine's thread may end at any time.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startProcess starts a process in a group of its own, which the kernel kills
// when this program ends, however it ends.
func startProcess(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}
