package localtest

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const childEnv = "LOCALTEST_CHILD"

// TestInAChild is not for this process: other tests run it in one of its own.
func TestInAChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("the child of other tests")
	}
	d := DynamoDBForTest(t)
	if DynamoDBForTest(t) != d {
		t.Error("started a second engine")
	}
	os.Stdout.WriteString("endpoint " + d.Endpoint + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has seen enough
}

// child runs TestInAChild on m.
func (m *machine) child() *exec.Cmd {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Setenv(childEnv, "1")
	m.t.Setenv("GORACE", "atexit_sleep_ms=0")
	cmd := exec.CommandContext(m.t.Context(), self, "-test.run=^TestInAChild$", "-test.v")
	cmd.Stderr = os.Stderr
	return cmd
}

func TestDynamoDBForTestSkipsWithoutADynamoDB(t *testing.T) {
	m := newMachine(t)
	t.Setenv("CI", "")
	out, err := m.child().Output()
	if err != nil || !strings.Contains(string(out), "--- SKIP: TestInAChild") {
		t.Errorf("got error %v, want a skipped test:\n%s", err, out)
	}
	for _, way := range []string{"DYNAMODB_ENDPOINT", "DYNAMODB_LOCAL_HOME", "Docker", "dynoxide"} {
		if !strings.Contains(string(out), way) {
			t.Errorf("does not name %s:\n%s", way, out)
		}
	}
}

func TestDynamoDBForTestFailsWithoutADynamoDBInCI(t *testing.T) {
	m := newMachine(t)
	t.Setenv("CI", "true")
	out, err := m.child().Output()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestInAChild") {
		t.Errorf("got error %v, want a failed test:\n%s", err, out)
	}
}

func TestDynamoDBForTestFailsWhenTheOneAskedForFails(t *testing.T) {
	m := newMachine(t)
	t.Setenv("CI", "")
	t.Setenv("DYNAMODB_ENDPOINT", "http://127.0.0.1:1")
	out, err := m.child().Output()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestInAChild") {
		t.Errorf("got error %v, want a failed test:\n%s", err, out)
	}
}

// A test binary can end in ways that run none of its code.
func TestNothingOutlivesTheTestBinary(t *testing.T) {
	for how, end := range map[string]func(*exec.Cmd, io.Closer) error{
		"that is done":   func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() },
		"that is killed": func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() },
	} {
		for _, engine := range []string{"dynoxide", "docker"} {
			t.Run(how+", with "+engine, func(t *testing.T) {
				m := newMachine(t, engine)
				cmd := m.child()
				stdin, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				stdout, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				address := ""
				for out := bufio.NewScanner(stdout); address == "" && out.Scan(); {
					_, address, _ = strings.Cut(out.Text(), "endpoint http://")
				}
				if c, err := net.Dial("tcp", address); err != nil {
					t.Fatal(err)
				} else {
					_ = c.Close()
				}
				if err := end(cmd, stdin); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // killed or not, it is over
				soon(t, "the engine is gone", func() bool {
					c, err := net.Dial("tcp", address)
					if err == nil {
						_ = c.Close()
					}
					return err != nil
				})
				if engine == "docker" {
					run := m.call("docker", "run")
					name := run[slices.Index(run, "--name")+1]
					soon(t, "the container is removed", func() bool {
						return slices.ContainsFunc(m.calls(), func(c []string) bool {
							return slices.Equal(c, []string{"docker", "rm", "--force", name})
						})
					})
				}
			})
		}
	}
}

// soon waits for what another process does and tells nobody.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for late := time.After(30 * time.Second); !done(); {
		select {
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		case <-again.C:
		}
	}
}
