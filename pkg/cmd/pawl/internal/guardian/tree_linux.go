package guardian

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// adopt makes orphans among the descendants children of this process, so that
// what leaves the group of the command is found.
func adopt() error {
	const subreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 1, 0); e != 0 {
		return os.NewSyscallError("prctl", e)
	}
	return nil
}

// sinceBoot is CLOCK_BOOTTIME, which counts the time of a suspended machine.
func sinceBoot() int64 {
	const boottime = 7
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, boottime, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// descendants returns the living processes below this one.
func descendants() (found []int) {
	below := make(map[int][]int)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range stats {
		b, err := os.ReadFile(path)
		i := bytes.LastIndexByte(b, ')') // the name before it may contain anything
		if err != nil || i < 0 {
			continue // it has ended meanwhile
		}
		f := bytes.Fields(b[i+1:])
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if parent, err := strconv.Atoi(string(f[1])); err == nil && f[0][0] != 'Z' {
			below[parent] = append(below[parent], pid)
		}
	}
	for next := below[os.Getpid()]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, below[next[0]]...)
	}
	return found
}

// killAll kills every descendant, and those that they start meanwhile.
func killAll() {
	for pids := descendants(); len(pids) > 0; pids = descendants() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		time.Sleep(time.Millisecond) // the kernel needs a moment; nothing tells of a grandchild
	}
}
