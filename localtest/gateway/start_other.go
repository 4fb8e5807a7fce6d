//go:build unix && !linux

package gateway

import (
	"os/exec"
	"syscall"
)

// startProcess starts a process in a group of its own. Only Linux can end it
// together with this program; elsewhere Close does, and a program that is killed
// leaves the function waiting for its Runtime API, whose loss makes it exit.
func startProcess(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
