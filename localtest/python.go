package localtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/localtest/rigor"
)

// pythonRequirements are the lists of packages that tests have, from the root of
// the module. Each is complete: what its packages require is in it too.
var pythonRequirements = []string{
	"infra/testdata/cfn-lint.txt",
	"localtest/openapi/generator.txt",
	"localtest/openapi/schemathesis.txt",
}

// pythonTool is an environment that has what is in a list, and nothing else.
func pythonTool(requirements string) tool {
	if root, err := repoRoot(); err == nil && !filepath.IsAbs(requirements) {
		requirements = filepath.Join(root, requirements)
	}
	list, err := os.ReadFile(requirements)
	name := fmt.Sprintf("python-%s-%.4x", listName(requirements), sha256.Sum256(list))
	return tool{name, func(ctx context.Context, dir string) error {
		if err != nil {
			return err
		}
		for _, args := range [][]string{
			{"python3", "-m", "venv", dir},
			{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check",
				"--no-deps", "-r", requirements},
		} {
			if _, err := process.Run(ctx, exec.Command(args[0], args[1:]...)); err != nil {
				return err
			}
		}
		return nil
	}}
}

func listName(requirements string) string {
	return strings.TrimSuffix(filepath.Base(requirements), ".txt")
}

// PythonForTest returns the interpreter of an environment that has what is in the
// file requirements. Where it is not installed it skips the test, but under CI it
// fails.
func PythonForTest(t testing.TB, requirements string) string {
	t.Helper()
	file, err := filepath.Abs(requirements)
	if err != nil {
		t.Fatal(err)
	}
	path, err := pythonTool(file).path("bin", "python")
	if err != nil {
		rigor.Lacking(t, fmt.Errorf("%w (it needs python3, and its modules venv and pip)", err))
	}
	return path
}
