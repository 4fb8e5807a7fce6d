package localtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
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

func TestToolIsBuiltOnceForAllWhoAskAtTheSameTime(t *testing.T) {
	root := module(t)
	var builds atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := Tool(t.Context(), "hammer-1", func(_ context.Context, dir string) error {
				builds.Add(1)
				return os.WriteFile(filepath.Join(dir, "hammer"), nil, 0o755)
			})
			if err != nil || dir != filepath.Join(root, ".tools/hammer-1") {
				t.Errorf("got %s, error %v", dir, err)
			}
			if !exists(filepath.Join(dir, "hammer")) {
				t.Error("returned before the tool was there")
			}
		})
	}
	all.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestToolWaitsForTheBuildOfAnotherProcess(t *testing.T) {
	root := module(t)
	if err := os.Mkdir(filepath.Join(root, ".tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	// flock belongs to the open file: this one stands for another process.
	unlock, err := lockFile(t.Context(), filepath.Join(root, ".tools/hammer-1.lock"))
	if err != nil {
		t.Fatal(err)
	}
	build := func(context.Context, string) error { t.Error("built a second time"); return nil }

	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := Tool(ctx, "hammer-1", build); !errors.Is(err, over) {
		t.Errorf("got error %v, want %v", err, over)
	}

	done := make(chan error)
	go func() {
		_, err := Tool(t.Context(), "hammer-1", build)
		done <- err
	}()
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
		_, err := Tool(t.Context(), "hammer-1", func(_ context.Context, dir string) error {
			if rest, err := os.ReadDir(dir); len(rest) > 0 || err != nil {
				t.Errorf("began with %v, error %v", rest, err)
			}
			writeFile(t, filepath.Join(dir, "rest"), "", 0o644)
			return result
		})
		if !errors.Is(err, result) {
			t.Errorf("got error %v, want %v", err, result)
		}
	}
}

func TestToolNeedsAModuleToPutItIn(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Tool(t.Context(), "hammer-1", nil); err == nil || !strings.Contains(err.Error(), "no go.mod") {
		t.Errorf("got error %v, want that there is no go.mod", err)
	}
}

func TestLambdaEmulatorIsBuiltOnceForThisMachine(t *testing.T) {
	m := newMachine(t, "go")
	t.Setenv("GOOS", "plan9") // as a build for Lambda sets it
	t.Setenv("GOFLAGS", "-mod=vendor")
	for range 2 {
		path, err := LambdaEmulator(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := exec.LookPath(path); err != nil {
			t.Error(err)
		}
	}
	m.call("go", "install", "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d")
}
