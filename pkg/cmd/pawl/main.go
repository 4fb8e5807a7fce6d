// Command pawl holds a lock around a program.
//
//	pawl run LOCK [--ttl 15s] [--wait 1m] [--min-hold 0s] -- command…
//
// The command is ended before the lock can be granted to another, also when pawl
// itself is stopped or killed. Two cases are not covered: a lock that someone
// breaks goes to another at once, and the command is killed when the next renewal
// is refused; and pawl and its guarding process can be stopped both. It has no input from a terminal, and cannot be
// stopped and continued by Ctrl-Z: a stopped pawl loses the lock.
package main

import (
	"fmt"
	"os"

	"github.com/pawl-lock/pawl/pkg/cmd/pawl/internal/guardian"
)

const usage = `pawl run LOCK [--ttl 15s] [--wait 1m] [--min-hold 0s] -- command...
holds LOCK ("namespace/lock") while the command runs, on Linux.

  --ttl       for how long the lock outlives a host that vanished, 1s to 1h; default 15s
  --wait      for how long to wait for the lock; default 0, which asks once
  --min-hold  for how long nobody else gets the lock, even if the command ends earlier

PAWL_URL is the service; PAWL_BEARER_FILE a file with a bearer token, if it needs one.
The command finds PAWL_LOCK and PAWL_FENCING_TOKEN in its environment. It gets no input
from a terminal, and pawl must not be stopped by Ctrl-Z: the lock is lost then.

Exit codes: the command's own, 128+n if signal n ended it, and
  120 held by another   121 not free within --wait   122 lost, the command was ended
  123 no usable answer, or refused access            125 misuse
  126 the command cannot be run                      127 no such command
`

func main() {
	args := os.Args[1:]
	switch {
	case len(args) > 1 && args[0] == guardian.Argument:
		guardian.Guard(args[1:])
	case len(args) == 1 && (args[0] == "help" || args[0] == "--help" || args[0] == "-h"):
		fmt.Print(usage)
	case len(args) > 0 && args[0] == "run":
		os.Exit(run(args[1:]))
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(misuse)
	}
}
