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
	"testing"

	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/localtest/rigor"
)

// errNotInstalled is why a tool is missing.
var errNotInstalled = errors.New("not installed: go run ./localtest/stores does that")

// A tool is what is built once into .tools at the root of the module. Its name has
// the version: what is there is not looked into.
type tool struct {
	name string
	make func(ctx context.Context, dir string) error // fills an empty directory
}

// dir is where the tool is, or would be.
func (t tool) dir() (string, error) {
	root, err := repoRoot()
	return filepath.Join(root, ".tools", t.name), err
}

// path is where a file of the tool is. It is an error if it has not been built.
func (t tool) path(file ...string) (string, error) {
	dir, err := t.dir()
	if err != nil {
		return "", err
	}
	if !exists(dir) {
		return "", fmt.Errorf("%s: %w", t.name, errNotInstalled)
	}
	return filepath.Join(append([]string{dir}, file...)...), nil
}

func (t tool) find(context.Context) error {
	_, err := t.path()
	return err
}

// build makes the tool unless it is there. What fails or is interrupted leaves
// nothing behind that a later call would take for the tool, and of two that build
// at the same time the first is kept.
func (t tool) build(ctx context.Context) error {
	dir, err := t.dir()
	if err != nil || exists(dir) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(dir), t.name+".unfinished-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	err = errors.Join(t.make(ctx, unfinished), os.Chmod(unfinished, 0o755))
	if err == nil {
		err = os.Rename(unfinished, dir)
	}
	if exists(dir) {
		return nil
	}
	return err
}

// goTool is a program that the Go command installs.
func goTool(program, version string) tool {
	return tool{path.Base(program) + "-" + version, func(ctx context.Context, dir string) error {
		cmd := exec.Command("go", "install", program+"@"+version)
		// What the caller set for its own build is not for this one: not its
		// module's flags, and not the machine it builds for.
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
		_, err := process.Run(ctx, cmd)
		return err
	}}
}

// lambdaEmulator is pinned because the module has no tagged release that the Go
// command accepts.
var lambdaEmulator = goTool("github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie",
	"v0.0.0-20261030222936-bef5c4ba774d")

// LambdaEmulatorForTest returns the path of the AWS Lambda Runtime Interface
// Emulator. Where it is not installed it skips the test, but under CI it fails.
func LambdaEmulatorForTest(t testing.TB) string {
	t.Helper()
	path, err := lambdaEmulator.path("aws-lambda-rie")
	if err != nil {
		rigor.Lacking(t, err)
	}
	return path
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
