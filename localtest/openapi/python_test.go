package openapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/rigor"
)

// python returns the interpreter of an environment that has what is in the file
// requirements. It is made once, into .tools.
func python(t *testing.T, requirements string) string {
	t.Helper()
	list, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(requirements)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	name := fmt.Sprintf("python-%s-%.4x", requirements[:len(requirements)-len(".txt")], sha256.Sum256(list))
	dir, err := localtest.Tool(ctx, name, func(ctx context.Context, dir string) error {
		for _, args := range [][]string{
			{"python3", "-m", "venv", dir},
			{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", path},
		} {
			if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%q: %w\n%s", args, err, out)
			}
		}
		return nil
	})
	if err != nil {
		rigor.Lacking(t, fmt.Errorf("%w: install python3, and its modules venv and pip", err))
	}
	return filepath.Join(dir, "bin", "python")
}

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
