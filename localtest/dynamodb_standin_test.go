package localtest

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/rigor"
)

// The test binary is also the java, docker, cargo, apt-get and python3 of its tests: it records
// how it was called and, where that starts an engine, becomes dynoxide.
const (
	standInEnv  = "LOCALTEST_STAND_IN"        // as which program to act
	recordEnv   = "LOCALTEST_RECORD"          // the file for the calls, one JSON array a line
	dynoxideEnv = "LOCALTEST_DYNOXIDE"        // what to become
	brokenEnv   = "LOCALTEST_STAND_IN_BROKEN" // the call that fails, such as "docker run"
	hangingEnv  = "LOCALTEST_STAND_IN_HANGS"  // the call that never ends
)

func TestMain(m *testing.M) {
	program := os.Getenv(standInEnv)
	if program == "" {
		os.Exit(m.Run())
	}
	if err := standIn(program, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(7)
	}
}

func standIn(program string, args []string) error {
	if err := record(append([]string{program}, args...)); err != nil {
		return err
	}
	switch program + " " + args[0] {
	case os.Getenv(brokenEnv):
		return fmt.Errorf("%s: out of order", program)
	case os.Getenv(hangingEnv):
		time.Sleep(time.Hour)
	}
	after := func(flag string) string { // the value of a flag, or ""
		i := slices.Index(args, flag)
		if i < 0 {
			return ""
		}
		return args[i+1]
	}
	switch {
	case program == "java":
		return becomeDynoxide(after("-port"), after("-dbPath"))
	case program == "docker" && args[0] == "run":
		port := strings.Split(after("--publish"), ":")[1]
		mount, _ := csv.NewReader(strings.NewReader(after("--mount"))).Read() // none is an error too
		dir := ""
		for _, field := range mount {
			if path, ok := strings.CutPrefix(field, "source="); ok {
				dir = path
			}
		}
		return becomeDynoxide(port, dir)
	case program == "cargo":
		bin := filepath.Join(after("--root"), "bin")
		return errors.Join(os.Mkdir(bin, 0o755), os.Symlink(os.Getenv(dynoxideEnv), filepath.Join(bin, "dynoxide")))
	case program == "python3":
		bin := filepath.Join(args[len(args)-1], "bin")
		return errors.Join(os.Mkdir(bin, 0o755), os.Symlink("/bin/true", filepath.Join(bin, "python")))
	case program == "apt-get" && args[len(args)-1] == "redis-server":
		return os.WriteFile(filepath.Join(os.Getenv("PATH"), "redis-server"), nil, 0o755)
	case program == "go":
		if bin := os.Getenv("GOBIN"); bin != "" && os.Getenv("GOFLAGS") == "" && os.Getenv("GOOS") == runtime.GOOS {
			return os.WriteFile(filepath.Join(bin, "aws-lambda-rie"), nil, 0o755)
		}
		return errors.New("go: would not build for this machine into .tools")
	}
	return nil
}

func becomeDynoxide(port, dir string) error {
	args := []string{"dynoxide", "--port", port}
	if dir != "" {
		args = append(args, "--db-path", filepath.Join(dir, "data.db"))
	}
	return syscall.Exec(os.Getenv(dynoxideEnv), args, os.Environ())
}

func record(call []string) error {
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(os.Getenv(recordEnv), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// A machine is all that StartDynamoDB can find: an empty module to work in and
// a PATH with nothing but what a test installs.
type machine struct {
	t         *testing.T
	bin, root string
	record    string
}

func newMachine(t *testing.T, programs ...string) *machine {
	t.Helper()
	dynoxide := realDynoxide(t)
	m := &machine{t: t, bin: t.TempDir(), root: t.TempDir(), record: filepath.Join(t.TempDir(), "calls")}
	writeFile(t, filepath.Join(m.root, "go.mod"), "module example.com/empty\n", 0o644)
	t.Chdir(m.root)
	for name, value := range map[string]string{
		"PATH": m.bin, recordEnv: m.record, dynoxideEnv: dynoxide,
		"DYNAMODB_ENDPOINT": "", "DYNAMODB_LOCAL_HOME": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if p == "dynoxide" {
			link(t, dynoxide, filepath.Join(m.bin, p))
			continue
		}
		// The race detector's second at the end of a process is not needed here.
		script := fmt.Sprintf("#!/bin/sh\nGORACE=atexit_sleep_ms=0 %s=%s exec '%s' \"$@\"\n", standInEnv, p, self)
		writeFile(t, filepath.Join(m.bin, p), script, 0o755)
	}
	return m
}

// dynamoDBLocal unpacks as much of DynamoDB Local as is looked at.
func (m *machine) dynamoDBLocal() (home string) {
	home = m.t.TempDir()
	writeFile(m.t, filepath.Join(home, "DynamoDBLocal.jar"), "", 0o644)
	m.t.Setenv("DYNAMODB_LOCAL_HOME", home)
	return home
}

// calls returns how the stand-ins were called so far.
func (m *machine) calls() (calls [][]string) {
	m.t.Helper()
	b, err := os.ReadFile(m.record)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var call []string
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			m.t.Fatal(err)
		}
		calls = append(calls, call)
	}
	return calls
}

// call returns the one call that begins like this.
func (m *machine) call(begin ...string) []string {
	m.t.Helper()
	all := m.calls()
	these := slices.DeleteFunc(slices.Clone(all), func(c []string) bool {
		return len(c) < len(begin) || !slices.Equal(c[:len(begin)], begin)
	})
	if len(these) != 1 {
		m.t.Fatalf("%d calls of %q, want 1; all calls: %q", len(these), begin, all)
	}
	return these[0]
}

var findDynoxide = sync.OnceValues(func() (string, error) {
	path, err := dynoxidePath()
	if err != nil {
		return "", err
	}
	return exec.LookPath(path)
})

// realDynoxide is the engine behind every stand-in.
func realDynoxide(t *testing.T) string {
	t.Helper()
	path, err := findDynoxide()
	if err != nil {
		rigor.Lacking(t, fmt.Errorf("needs dynoxide: %w", err))
	}
	return path
}

func writeFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}
