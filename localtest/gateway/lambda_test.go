package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestConcurrentInvokesRunInAProcessEach(t *testing.T) {
	t.Parallel()
	l, gate := newLambda(t)
	l.Concurrency = 10
	answers := map[int]<-chan answer{}
	var visitors []visitor
	for range 10 {
		answered := invokeLater(t, l, `{"do":"gate"}`)
		v := gate.next(t) // so all ten are inside at once
		visitors = append(visitors, v)
		answers[v.pid] = answered
	}
	if len(answers) != 10 {
		t.Errorf("%d processes for 10 invokes", len(answers))
	}
	if _, err := l.Invoke(t.Context(), []byte(`{"do":"pid"}`)); !errors.Is(err, ErrThrottled) {
		t.Errorf("the eleventh invoke: %v, want %v", err, ErrThrottled)
	}
	for _, v := range visitors {
		v.pass(t)
		if a := <-answers[v.pid]; string(a.payload) != fmt.Sprint(v.pid) || a.err != nil {
			t.Errorf("process %d answered %q, %v", v.pid, a.payload, a.err)
		}
	}
	if got, want := invoke(t, l, `{"do":"pid"}`), fmt.Sprint(visitors[9].pid); got != want {
		t.Errorf("the next invoke ran in %s, want the most recently used process, %s", got, want)
	}
}

func TestInvokesOneAfterAnotherShareAProcess(t *testing.T) {
	t.Parallel()
	l, _ := newLambda(t)
	l.Concurrency = 1
	first := invoke(t, l, `{"do":"pid"}`)
	for range 100 {
		if got := invoke(t, l, `{"do":"pid"}`); got != first {
			t.Fatalf("ran in process %s, want %s", got, first)
		}
	}
}

func TestATimeoutKillsTheProcess(t *testing.T) {
	t.Parallel()
	l, gate := newLambda(t)
	l.Timeout, l.Concurrency = time.Second, 1
	answered := invokeLater(t, l, `{"do":"gate"}`)
	v := gate.next(t)
	if a := <-answered; !errors.Is(a.err, ErrTimeout) {
		t.Errorf("got %v, want %v", a.err, ErrTimeout)
	}
	v.gone(t)
	if got := invoke(t, l, `{"do":"pid"}`); got == fmt.Sprint(v.pid) {
		t.Errorf("process %s is still in use", got)
	}
}

func TestAFunctionKnowsItsDeadline(t *testing.T) {
	t.Parallel()
	l, _ := newLambda(t)
	l.Timeout = 17 * time.Second
	before := time.Now().Truncate(time.Millisecond)
	var at time.Time
	if err := json.Unmarshal([]byte(invoke(t, l, `{"do":"deadline"}`)), &at); err != nil {
		t.Fatal(err)
	}
	if at.Before(before.Add(l.Timeout)) || at.After(time.Now().Add(l.Timeout)) {
		t.Errorf("deadline %v, want %v after the invoke at %v", at, l.Timeout, before)
	}
}

func TestAFailureIsTheFunctionsAndTheNextInvokeWorks(t *testing.T) {
	t.Parallel()
	for do, want := range map[string]FunctionError{
		"error": {"errorString", "no luck"},
		"panic": {"string", "boom"},
		"exit":  {"Runtime.ExitError", "exit status 3"},
	} {
		t.Run(do, func(t *testing.T) {
			l, _ := newLambda(t)
			l.Concurrency = 1
			for range 3 {
				_, err := l.Invoke(t.Context(), []byte(`{"do":"`+do+`"}`))
				var got *FunctionError
				if !errors.As(err, &got) || got.Type != want.Type || !strings.Contains(got.Message, want.Message) {
					t.Fatalf("got %v, want %v", err, &want)
				}
				invoke(t, l, `{"do":"pid"}`)
			}
		})
	}
}

func TestAFunctionThatDoesNotInitializeFails(t *testing.T) {
	t.Parallel()
	for init, want := range map[string]string{
		"exit":  "Runtime.ExitError",
		"error": "Runtime.NoTable: no table",
		"hang":  ErrTimeout.Error(),
	} {
		t.Run(init, func(t *testing.T) {
			l, _ := newLambda(t, "INIT="+init)
			if l.Concurrency = 1; init == "hang" {
				l.initTimeout = time.Second
			}
			for range 2 { // the failure frees the place
				if _, err := l.Invoke(t.Context(), []byte(`{}`)); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
}

func TestABootstrapThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	l := &Lambda{Bootstrap: "testdata/none", Concurrency: 1}
	defer l.Close()
	for range 2 {
		if _, err := l.Invoke(t.Context(), []byte(`{}`)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want %v", err, os.ErrNotExist)
		}
	}
}

func TestAFunctionRunsToItsEndForACallerThatHasGone(t *testing.T) {
	t.Parallel()
	l, gate := newLambda(t)
	l.Concurrency = 1
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error)
	go func() {
		_, err := l.Invoke(ctx, []byte(`{"do":"gate"}`))
		returned <- err
	}()
	v := gate.next(t)
	cancel()
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := l.Invoke(t.Context(), []byte(`{"do":"pid"}`)); !errors.Is(err, ErrThrottled) {
		t.Errorf("while it runs: %v, want %v", err, ErrThrottled)
	}
	v.pass(t)
}

func TestCloseLeavesNoProcessBehind(t *testing.T) {
	t.Parallel()
	l, gate := newLambda(t)
	atWork := invokeLater(t, l, `{"do":"gate"}`)
	busy := gate.next(t)
	invoke(t, l, `{"do":"child"}`)
	idle := gate.next(t)
	if busy.pid == idle.pid {
		t.Fatal("one process had two invokes at once")
	}
	l.Close()
	for _, v := range []visitor{busy, idle} {
		if err := syscall.Kill(v.pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d is still there: %v", v.pid, err)
		}
		v.gone(t)
	}
	var failed *FunctionError
	if a := <-atWork; !errors.As(a.err, &failed) {
		t.Errorf("the invoke under way: %q, %v", a.payload, a.err)
	}
	if _, err := l.Invoke(t.Context(), []byte(`{}`)); !errors.Is(err, ErrClosed) {
		t.Errorf("Invoke after Close: %v, want %v", err, ErrClosed)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

func TestWhatAProcessStartedEndsWithIt(t *testing.T) {
	t.Parallel()
	l, gate := newLambda(t)
	l.Concurrency = 1
	invoke(t, l, `{"do":"child"}`)
	child := gate.next(t)
	if _, err := l.Invoke(t.Context(), []byte(`{"do":"exit"}`)); err == nil {
		t.Error("no error")
	}
	child.gone(t)
}

func TestAProgramThatIsKilledLeavesNoProcessBehind(t *testing.T) {
	t.Parallel()
	l, gate := newLambda(t)
	program := exec.Command(l.Bootstrap)
	program.Env = append(os.Environ(), l.Env...)
	program.Env = append(program.Env, "ROLE=program")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	v := gate.next(t)
	program.Process.Kill()
	_ = program.Wait() // killed
	v.gone(t)
}

func TestAnAnswerToNoInvokeIsRefused(t *testing.T) {
	t.Parallel()
	api := (&environment{lambda: new(Lambda), current: &invocation{id: "this"}}).runtimeAPI()
	for _, end := range []string{"response", "error"} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest("POST", "/2018-06-01/runtime/invocation/other/"+end, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "InvalidRequestID") {
			t.Errorf("%s: %d %s", end, w.Code, w.Body)
		}
	}
}

func TestLinesOfALogAreWhole(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer // shared by two, with the race detector looking on
	first, _ := newLambda(t)
	second, _ := newLambda(t)
	var answers []<-chan answer
	for _, l := range []*Lambda{first, second} {
		l.Log = &log
		for _, word := range []string{"aaaa", "bbbb", "cccc"} {
			answers = append(answers, invokeLater(t, l, `{"do":"print","arg":"`+word+`"}`))
		}
	}
	for _, answered := range answers {
		if a := <-answered; a.err != nil {
			t.Error(a.err)
		}
	}
	first.Close()
	second.Close()
	got := map[string]int{}
	for line := range strings.Lines(log.String()) {
		got[line]++
	}
	if want := map[string]int{"aaaaaaaa\n": 200, "bbbbbbbb\n": 200, "cccccccc\n": 200}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestALogEndsWithALineEvenIfTheFunctionDoesNot(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l, _ := newLambda(t)
	l.Log = &log
	invoke(t, l, `{"do":"unfinished","arg":"so"}`)
	l.Close()
	if got, want := log.String(), "so\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

func TestTheEnvironmentIsThatOfLambda(t *testing.T) {
	t.Setenv("PARENT", "only")
	l, _ := newLambda(t, "AWS_REGION=eu-central-1")
	var env []string
	if err := json.Unmarshal([]byte(invoke(t, l, `{"do":"env"}`)), &env); err != nil {
		t.Fatal(err)
	}
	slices.Sort(env)
	got := strings.Join(env, "\n")
	for _, want := range []string{
		`AWS_LAMBDA_RUNTIME_API=127\.0\.0\.1:\d+`, `AWS_LAMBDA_FUNCTION_NAME=\S+`, `AWS_LAMBDA_FUNCTION_VERSION=\$LATEST`,
		`AWS_LAMBDA_FUNCTION_MEMORY_SIZE=\d+`, `AWS_REGION=eu-central-1`, `LAMBDA_TASK_ROOT=/\S+`, `ROLE=bootstrap`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(got) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "PARENT") {
		t.Errorf("the parent's environment is passed on:\n%s", got)
	}
}
