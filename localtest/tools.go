package localtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
)

// lambdaEmulatorVersion is pinned because the module has no tagged release that
// the Go command accepts.
const lambdaEmulatorVersion = "v0.0.0-20261030222936-bef5c4ba774d"

// LambdaEmulator returns the path of the AWS Lambda Runtime Interface Emulator,
// which it builds the first time with the Go command.
func LambdaEmulator(ctx context.Context) (string, error) {
	return goTool(ctx, "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie", lambdaEmulatorVersion)
}

// goTool returns the path of a program that the Go command installs.
func goTool(ctx context.Context, program, version string) (string, error) {
	name := path.Base(program)
	dir, err := Tool(ctx, name+"-"+version, func(ctx context.Context, dir string) error {
		cmd := exec.Command("go", "install", program+"@"+version)
		// What the caller set for its own build is not for this one: not its
		// module's flags, and not the machine it builds for.
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
		_, err := process.Run(ctx, cmd)
		return err
	})
	return filepath.Join(dir, name), err
}

// Tool returns the directory .tools/name at the root of the module. When there
// is none yet, build is called to fill it, by one process at a time; a build
// that fails or is interrupted leaves nothing behind that a later call would
// take for the tool. The name should carry the version: what is there is not
// looked into.
func Tool(ctx context.Context, name string, build func(ctx context.Context, dir string) error) (dir string, err error) {
	dir, err = tool(ctx, name, build)
	if err != nil {
		return "", fmt.Errorf("localtest: build %s: %w", name, err)
	}
	return dir, nil
}

func tool(ctx context.Context, name string, build func(context.Context, string) error) (string, error) {
	root, err := repoRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".tools", name)
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) { // built by whoever had the lock before us
		return dir, nil
	}
	fmt.Fprintf(os.Stderr, "localtest: building %s into .tools, once\n", name)
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", err
	}
	if err := os.Mkdir(unfinished, 0o755); err != nil {
		return "", err
	}
	if err := build(ctx, unfinished); err != nil {
		return "", err
	}
	return dir, os.Rename(unfinished, dir)
}

// repoRoot is the nearest directory with a go.mod, from the working directory up.
func repoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod in the working directory or above it")
		}
		dir = up
	}
	return dir, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lockFile waits for the lock on a file. The kernel gives it back if we die.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	// A blocking flock could not be given up when ctx ends.
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
		case <-again.C:
		}
	}
}
