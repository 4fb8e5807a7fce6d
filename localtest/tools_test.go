package localtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module makes an empty module the working directory, one level below its root.
func module(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	writeFile(t, filepath.Join(root, "go.mod"), "module example.com/empty\n", 0o644)
	below := filepath.Join(root, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	return root
}

// hammer is a tool that make fills.
func hammer(make func(dir string) error) tool {
	return tool{"hammer-1", func(_ context.Context, dir string) error { return make(dir) }}
}

func TestAToolIsBuiltOnceAndWhole(t *testing.T) {
	root := module(t)
	builds := 0
	h := hammer(func(dir string) error {
		builds++
		if exists(filepath.Join(root, ".tools/hammer-1")) {
			t.Error("there before it is done")
		}
		return os.WriteFile(filepath.Join(dir, "hammer"), nil, 0o755)
	})
	if _, err := h.path("hammer"); !errors.Is(err, errNotInstalled) {
		t.Errorf("before: got error %v, want that it is not installed", err)
	}
	for range 2 {
		if err := h.build(t.Context()); err != nil {
			t.Error(err)
		}
		path, err := h.path("hammer")
		if err != nil || path != filepath.Join(root, ".tools/hammer-1/hammer") || !exists(path) {
			t.Errorf("got %s, error %v", path, err)
		}
	}
	if builds != 1 {
		t.Errorf("built %d times, want once", builds)
	}
}

func TestOfTwoBuildsOfAToolTheFirstIsKept(t *testing.T) {
	root := module(t)
	first := filepath.Join(root, ".tools/hammer-1/first")
	if err := hammer(func(dir string) error {
		return errors.Join(os.Mkdir(filepath.Dir(first), 0o755), os.WriteFile(first, nil, 0o755), os.WriteFile(filepath.Join(dir, "second"), nil, 0o755))
	}).build(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(root, ".tools/*")); len(left) != 1 || !exists(first) {
		t.Errorf("left %v, error %v", left, err)
	}
}

func TestABuildThatFailsIsDoneAgainFromTheStart(t *testing.T) {
	module(t)
	broken := errors.New("broken")
	for _, result := range []error{broken, nil} {
		err := hammer(func(dir string) error {
			if rest, err := os.ReadDir(dir); len(rest) > 0 || err != nil {
				t.Errorf("began with %v, error %v", rest, err)
			}
			writeFile(t, filepath.Join(dir, "rest"), "", 0o644)
			return result
		}).build(t.Context())
		if !errors.Is(err, result) {
			t.Errorf("got error %v, want %v", err, result)
		}
	}
}

func TestAToolNeedsAModuleToBeIn(t *testing.T) {
	t.Chdir(t.TempDir())
	_, find := hammer(nil).path()
	for _, err := range []error{find, hammer(nil).build(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "no go.mod") {
			t.Errorf("got error %v, want that there is no go.mod", err)
		}
	}
}

func TestAGoToolIsBuiltForThisMachine(t *testing.T) {
	m := newMachine(t, "go")
	t.Setenv("GOOS", "plan9") // as a build for Lambda sets it
	t.Setenv("GOFLAGS", "-mod=vendor")
	if err := lambdaEmulator.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if path := LambdaEmulatorForTest(t); !exists(path) {
		t.Errorf("there is no %s", path)
	}
	m.call("go", "install", "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d")
}
