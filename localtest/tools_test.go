package localtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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

func TestAToolIsBuiltOnceForAllWhoAskAtTheSameTime(t *testing.T) {
	root := module(t)
	var builds atomic.Int64
	h := hammer(func(dir string) error {
		builds.Add(1)
		return os.WriteFile(filepath.Join(dir, "hammer"), nil, 0o755)
	})
	if _, err := h.path("hammer"); !errors.Is(err, errNotInstalled) {
		t.Errorf("before: got error %v, want that it is not installed", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := h.build(t.Context()); err != nil {
				t.Error(err)
			}
			path, err := h.path("hammer")
			if err != nil || path != filepath.Join(root, ".tools/hammer-1/hammer") || !exists(path) {
				t.Errorf("got %s, error %v", path, err)
			}
		})
	}
	all.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestAToolWaitsForTheBuildOfAnotherProcess(t *testing.T) {
	root := module(t)
	if err := os.Mkdir(filepath.Join(root, ".tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	// flock belongs to the open file: this one stands for another process.
	unlock, err := lockFile(t.Context(), filepath.Join(root, ".tools/hammer-1.lock"))
	if err != nil {
		t.Fatal(err)
	}
	h := hammer(func(string) error { t.Error("built a second time"); return nil })

	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if err := h.build(ctx); !errors.Is(err, over) {
		t.Errorf("got error %v, want %v", err, over)
	}

	done := make(chan error)
	go func() { done <- h.build(t.Context()) }()
	if err := os.Mkdir(filepath.Join(root, ".tools/hammer-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
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
