package openapi

import (
	"os"
	"os/exec"
	"testing"
)

// run runs a program to its end and returns what it printed.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}
