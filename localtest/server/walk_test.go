package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease/sigv4"
)

// What the programs in other languages print.
const walked = `acquired
held by worker-1
renewed
held by worker-1
released
acquired with a larger token: yes
acquired, abandoned by worker-2
released
`

// What a walk leaves behind must not be in the way of the next, in any order.
func TestAnyLanguageCanTakeALock(t *testing.T) {
	programs := [][]string{{rigor.Program(t, "python3"), "../languages/walk.py"}, {rigor.Program(t, "node"), "../languages/walk.mjs"}}
	url, log := serve(t, "AUTH", "iam", "AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY", "se/cr+et")
	run := func(program []string, secret string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program[0], append(program[1:], args...)...)
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY="+secret, "AWS_SESSION_TOKEN=", "AWS_REGION=us-east-1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	python, node := programs[0], programs[1]
	walk := func(program []string, args ...string) {
		if out, err := run(program, "se/cr+et", args...); err != nil || out != walked {
			t.Errorf("%v %v: got %v\n%s\nwant\n%s", program, args, err, out, walked)
		}
	}
	walk(python, url)
	walk(node, url+"/")
	for _, program := range [][]string{python, node, node, python, python} {
		walk(program, url, "orders", "night job/1")
	}
	if !strings.Contains(log.String(), `"namespace":"orders","lock":"night job/1"`) {
		t.Error("the namespace and the lock that were asked for are not in the log")
	}
	if _, err := client(url, &sigv4.Transport{Credentials: key{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "se/cr+et"}, Region: "us-east-1"}).
		Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "orders", Lock: "taken"}, TTL: time.Minute, Holder: "me"}); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		for _, bad := range []struct {
			secret string
			args   []string
			says   string
		}{
			{"guess", []string{url}, `acquire: 403 instead of 201: {"message":"Forbidden"}`},
			{"", []string{url}, `acquire: 403 instead of 201: {"message":"Forbidden"}`},
			{"se/cr+et", []string{url, "Orders"}, `"field":"namespace"`},
			{"se/cr+et", []string{url, "orders", "taken"}, `acquire: 409 instead of 201: `},
			{"se/cr+et", []string{"http://127.0.0.1:1"}, "acquire: no answer: "},
			{"se/cr+et", nil, "[namespace [lock]]"},
		} {
			out, err := run(program, bad.secret, bad.args...)
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, bad.says) {
				t.Errorf("%v %q: got %v %s, want %s", program, bad.args, err, out, bad.says)
			}
		}
	}
}

// The README's curl, as it stands there, with static keys and with those of a
// session: a header that is signed and then left out, for it is empty, is
// refused.
func TestTheCallOfTheREADMEIsSigned(t *testing.T) {
	rigor.Program(t, "curl")
	readme, err := os.ReadFile("../../infra/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var call string
	for _, block := range blocks(section(t, string(readme), "## Call it")) {
		if _, after, found := strings.Cut(block.text, "\ncurl "); found {
			call = "curl " + after
		}
	}
	for _, session := range []string{"", "FwoGZXIvYXdzEXAMPLE//////////wEaD+x="} {
		t.Run("session "+session, func(t *testing.T) {
			url, log := serve(t, "AUTH", "iam", "AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY", "se/cr+et", "AWS_SESSION_TOKEN", session)
			cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", call)
			cmd.Env = append(os.Environ(), "URL="+url, "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=se/cr+et", "AWS_SESSION_TOKEN="+session, "AWS_REGION=us-east-1")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), `"lease_id":`) {
				t.Errorf("session %q: %s\ngot %v %s\n%s", session, call, err, out, log)
			}
		})
	}
}

// makeServe runs `make serve`, as a user starts it, and returns the line that it
// prints when it is ready.
func makeServe(t *testing.T, env ...string) (ready string, p *process.Talk) {
	t.Helper()
	db := localtest.DynamoDBForTest(t) // has what it takes to start one been installed?
	cmd := exec.Command("make", "-s", "-C", "../..", "serve")
	cmd.Env = append(os.Environ(), append(env, "DYNAMODB_ENDPOINT="+db.Endpoint, "TABLE=table-"+lease.NewID())...)
	p, err := process.StartTalk(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if ready, err = p.Hear(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ready, p
}

var readyLine = regexp.MustCompile(`^pawl: listening on (http://127\.0\.0\.1:\d+), store (.+)$`)

func TestMakeServeSaysWhenItIsReadyAndStopsCleanly(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			ready, p := makeServe(t, "ADDR=127.0.0.1:0")
			if !readyLine.MatchString(ready) {
				t.Errorf("it printed %q", ready)
			}
			p.Signal(signal) // make itself passes nothing on
			if more := p.Rest(t.Context()); len(more) > 0 {
				t.Errorf("it went on printing: %q", more)
			}
		})
	}
}

func TestMakeServeSaysWhyItRefuses(t *testing.T) {
	for auth, want := range map[string]string{
		"iam": "make one up, and set it here and for those who call: AWS_ACCESS_KEY_ID=",
		"jwt": "AUTH=jwt needs JWT_KEY",
		"IAM": `AUTH is "IAM", want none, iam or jwt`,
	} {
		t.Run(auth, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "make", "-s", "-C", "../..", "serve")
			cmd.Env = append(os.Environ(), "ADDR=127.0.0.1:0", "AUTH="+auth, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "JWT_KEY=")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("AUTH=%s: got %v %s, want %s", auth, err, out, want)
			}
		})
	}
}

// The walk through every call, on the service that make serve starts.
func TestTheWalkThroughEveryCall(t *testing.T) {
	ready, _ := makeServe(t, "ADDR=127.0.0.1:0")
	walkThrough(t, readyLine.FindStringSubmatch(ready)[1], "../../pkg/lease/httplease/README.md", "## A walk through every call", 7)
}

// The first minute of the README, on a service in memory.
func TestTheFirstMinuteOfTheREADME(t *testing.T) {
	s := settings{memory: true, getenv: func(string) string { return "" }}
	service, err := s.start(t.Context(), new(log))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service.handler)
	defer server.Close()
	walkThrough(t, server.URL, "../../README.md", "## The first minute", 3)
}
