package lock

import (
	"syscall"
	"time"
	"unsafe"
)

// suspended is for how long the machine has been suspended since it was started.
// One clock goes on in the meantime, the other does not.
func suspended() time.Duration {
	const monotonic, boot = 1, 7 // of clock_gettime(2)
	var since time.Duration
	for range 3 { // nothing may come in between
		before, all, after := read(monotonic), read(boot), read(monotonic)
		if since = all - after; after-before < time.Millisecond {
			break
		}
	}
	return max(since, 0)
}

func read(clock uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); failed != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
