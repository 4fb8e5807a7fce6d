package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func talk(t *testing.T, script string) *Talk {
	t.Helper()
	p, err := StartTalk(exec.Command("/bin/sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func hear(t *testing.T, p *Talk, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if got, err := p.Hear(ctx); got != want || err != nil {
		t.Fatalf("heard %q, error %v, want %q", got, err, want)
	}
}

func TestATalkGoesLineByLineToTheEnd(t *testing.T) {
	p := talk(t, `while read -r line; do echo "you said $line"; done; echo bye; printf "no newline"`)
	for _, word := range []string{"one", "two"} {
		if err := p.Tell(word); err != nil {
			t.Fatal(err)
		}
		hear(t, p, "you said "+word)
	}
	if got := p.Rest(t.Context()); !slices.Equal(got, []string{"bye", "no newline"}) {
		t.Errorf("got %q at the end", got)
	}
}

func TestATalkThatEndsEarlyTellsWhyInItsOwnWords(t *testing.T) {
	p := talk(t, "echo listening; echo no space left >&2; exit 3")
	hear(t, p, "listening")
	const want = "sh ended: exit status 3: no space left"
	if _, err := p.Hear(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestATalkIsWaitedForAsLongAsTheContext(t *testing.T) {
	p := talk(t, "read -r _; echo late")
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if got, err := p.Hear(ctx); !errors.Is(err, over) {
		t.Errorf("heard %q, error %v, want %v", got, err, over)
	}
	if err := p.Tell(""); err != nil {
		t.Fatal(err)
	}
	hear(t, p, "late") // the next call has a context of its own
}

func TestAPausedProgramDoesNothingUntilItIsResumed(t *testing.T) {
	p := talk(t, "while read -r line; do echo $line; done")
	if err := errors.Join(p.Pause(), p.Tell("hello")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := p.Hear(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused, it said %q, error %v", got, err)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	hear(t, p, "hello")
}

const parentEnv = "PROCESS_PARENT"

// TestAsAParent is not for this process: another test runs it in one of its own.
func TestAsAParent(t *testing.T) {
	if os.Getenv(parentEnv) == "" {
		t.Skip("the parent of another test")
	}
	p := talk(t, "trap '' HUP; echo started; kill -s STOP $$; while :; do sleep 1; done")
	hear(t, p, "started")
	os.Stdout.WriteString("ready\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until we are killed
}

// A pipe that ends is seen by no process that is stopped.
func TestAPausedProgramDiesWithAParentThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "-test.run=^TestAsAParent$")
	parent.Env = append(os.Environ(), parentEnv+"=1")
	if _, err := parent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // all that descends from the parent has its end
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	parent.ExtraFiles = []*os.File{w}
	if err := errors.Join(parent.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "ready"); {
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	if err := r.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end of every process", err)
	}
}
