package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// What the programs in other languages print.
const walked = `201 acquired
409 held by worker-1
200 renewed
200 held by worker-1
200 released
201 acquired with a larger token: %s
201 acquired, abandoned by worker-2
`

func TestAnyLanguageCanTakeALock(t *testing.T) {
	for _, program := range []struct{ command, file, yes string }{
		{"python3", "walk.py", "True"},
		{"node", "walk.mjs", "true"},
	} {
		t.Run(program.command, func(t *testing.T) {
			path, err := exec.LookPath(program.command)
			if err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skipf("SKIPPED: %v: install it to run this test", err)
			}
			url, _ := serve(t, "AUTH", "iam", "AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY", "se/cr+et")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, "../languages/"+program.file)
			cmd.Env = append(os.Environ(), "PAWL_URL="+url, "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=se/cr+et", "AWS_SESSION_TOKEN=", "AWS_REGION=us-east-1")
			out, err := cmd.CombinedOutput()
			if want := strings.Replace(walked, "%s", program.yes, 1); err != nil || string(out) != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
			}
		})
	}
}

// A serving is `make serve`, as a user starts it.
type serving struct {
	ready string // the line that it prints
	rest  *bufio.Scanner
	cmd   *exec.Cmd
}

func makeServe(t *testing.T, env ...string) serving {
	t.Helper()
	db := localtest.DynamoDBForTest(t) // has what it takes to start one been installed?
	cmd := exec.Command("make", "-s", "-C", "../..", "serve")
	cmd.Env = append(os.Environ(), append(env, "DYNAMODB_ENDPOINT="+db.Endpoint, "TABLE=table-"+lease.NewID())...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // it may have ended
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("make serve printed nothing: %v", cmd.Wait())
	}
	return serving{lines.Text(), lines, cmd}
}

var readyLine = regexp.MustCompile(`^pawl: listening on (http://127\.0\.0\.1:\d+), store (.+)$`)

func TestMakeServeSaysWhenItIsReadyAndStopsCleanly(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s := makeServe(t, "ADDR=127.0.0.1:0")
		if !readyLine.MatchString(s.ready) {
			t.Errorf("it printed %q", s.ready)
		}
		// To the group, as a terminal does; make itself passes nothing on.
		if err := syscall.Kill(-s.cmd.Process.Pid, signal); err != nil {
			t.Fatal(err)
		}
		for s.rest.Scan() {
			t.Errorf("it went on printing: %q", s.rest.Text())
		}
		_ = s.cmd.Wait() // make fails when it is interrupted
	}
}

// TestTheWalkThroughOfTheREADME runs the README's commands as they stand there,
// in one shell, and compares what they print with what it says they print. "…"
// stands for anything.
func TestTheWalkThroughOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := makeServe(t, "ADDR=127.0.0.1:0")
	address := readyLine.FindStringSubmatch(s.ready)[1]
	const mark = "=== end of step ==="
	var script strings.Builder
	var want []string
	for _, block := range blocks(section(t, string(readme), "## Walk through")) {
		switch block.language {
		case "sh":
			script.WriteString(strings.ReplaceAll(block.text, "http://127.0.0.1:8080", address) + "\necho; echo '" + mark + "'\n")
			want = append(want, "")
		case "http", "json":
			want[len(want)-1] = block.text
		}
	}
	if len(want) < 6 {
		t.Fatalf("found only %d steps", len(want))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script.String())
	shell.Dir = t.TempDir()
	shell.Stderr = os.Stderr
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	steps := strings.Split(string(out), mark+"\n")
	last := int64(0)
	for i, w := range want {
		got := strings.TrimSpace(strings.ReplaceAll(steps[i], "\r", ""))
		pattern := strings.ReplaceAll(regexp.QuoteMeta(w), "\n…\n", "\n(.*\n)?") // any lines, or none
		pattern = "(?s)^" + strings.ReplaceAll(pattern, "…", ".*") + "$"
		if !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("step %d printed\n%s\nand the README says\n%s", i+1, got, w)
		}
		if token := regexp.MustCompile(`"token":(\d+),"lease_id"`).FindStringSubmatch(got); token != nil {
			n, _ := strconv.ParseInt(token[1], 10, 64)
			if n < last {
				t.Errorf("step %d has the token %d, after %d", i+1, n, last)
			}
			last = n
		}
	}
}

// section returns the text below a heading, to the next of its level.
func section(t *testing.T, text, heading string) string {
	_, after, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("the README has no %q", heading)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	return body
}

type block struct{ language, text string }

var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)\n```$")

func blocks(text string) (found []block) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		found = append(found, block{m[1], m[2]})
	}
	return found
}
