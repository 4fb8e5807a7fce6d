package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheProgramOfTheREADMECompilesAsItStands(t *testing.T) {
	t.Parallel()
	program := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindStringSubmatch(readme(t))
	if program == nil {
		t.Fatal("there is none")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the README promises is shown by commands. One that selects no test, or a
// target that make does not know, shows nothing.
func TestTheCommandsOfTheREADMERunSomething(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(readme(t), `\|`, "|") // as it is written in a table
	commands := regexp.MustCompile("`go test -run ('[^'`]+'|\\S+) (\\./\\S+)`").FindAllStringSubmatch(text, -1)
	targets := regexp.MustCompile("`make ([a-z-]+)`").FindAllStringSubmatch(text, -1)
	if len(commands) < 5 || len(targets) < 3 {
		t.Fatalf("found only %q and %q", commands, targets)
	}
	for _, c := range commands {
		t.Run(c[0], func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "test", "-list", strings.Trim(c[1], "'"), c[2])
			cmd.Dir = "../.."
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Test") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for _, target := range targets {
		if !strings.Contains(string(makefile), "\n"+target[1]+": ") {
			t.Errorf("make knows no %q", target[1])
		}
	}
}
