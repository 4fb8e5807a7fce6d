package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell starts a script that says "ready" on a pipe when it is. The pipe ends
// when the last process that came of the script is gone.
func shell(t *testing.T, script string, after ...string) (p *Process, alive *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if err := r.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.ExtraFiles = []*os.File{w}
	p, err = Start(cmd, after...)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	alive = bufio.NewReader(r)
	if line, err := alive.ReadString('\n'); line != "ready\n" {
		t.Fatalf("got %q, error %v, want ready", line, err)
	}
	return p, alive
}

func TestStopAsksBeforeItKills(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said")
	p, _ := shell(t, "trap 'echo goodbye >"+said+"; exit 0' TERM; echo ready >&3; while :; do sleep 0.01; done")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(said); string(b) != "goodbye\n" {
		t.Errorf("got %q, error %v, want goodbye", b, err)
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	p, alive := shell(t, "trap '' TERM; echo ready >&3; while :; do sleep 1; done")
	p.grace = time.Millisecond
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end of every process", err)
	}
}

func TestNothingOfTheGroupOutlivesItsLeader(t *testing.T) {
	p, alive := shell(t, "sh -c 'trap \"\" TERM; echo ready >&3; while :; do sleep 1; done' & wait")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end of every process", err)
	}
}

func TestAProcessThatEndsByItselfIsAnErrorInItsOwnWords(t *testing.T) {
	const want = "sh ended: exit status 3: no space left"
	begin := func() *Process {
		p, err := Start(exec.Command("/bin/sh", "-c", "echo no space left >&2; exit 3"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	never := errors.New("never")
	if err := begin().Ready(t.Context(), func(context.Context) error { return never }); err == nil || err.Error() != want {
		t.Errorf("ready: got error %v, want %s", err, want)
	}
	p := begin()
	<-p.exited
	if err := p.Stop(); err == nil || err.Error() != want {
		t.Errorf("stop: got error %v, want %s", err, want)
	}
	if _, err := Run(t.Context(), exec.Command("/bin/sh", "-c", "echo no space left; exit 3")); err == nil || err.Error() != want {
		t.Errorf("run: got error %v, want %s", err, want)
	}
}

func TestReadyAsksUntilTheAnswerIsYes(t *testing.T) {
	p, _ := shell(t, "echo ready >&3; sleep 1000")
	asked := 0
	err := p.Ready(t.Context(), func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || asked != 3 {
		t.Errorf("got error %v after asking %d times, want none after 3", err, asked)
	}
}

func TestReadyDoesNotWaitForTheAnswerToAProcessThatEnded(t *testing.T) {
	p, err := Start(exec.Command("true"))
	if err != nil {
		t.Fatal(err)
	}
	err = p.Ready(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if want := "true ended: exit status 0: "; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestRunEndsTheProgramWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles = []*os.File{w}
	if _, err := Run(ctx, cmd); !errors.Is(err, over) {
		t.Errorf("got error %v, want %v", err, over)
	}
	_ = w.Close()
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end of the program", err)
	}
}

func TestTheCommandForAfterwardsRunsWhenTheProcessHasEnded(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	p, _ := shell(t, "echo ready >&3; sleep 1000", "touch", done)
	if exists(done) {
		t.Error("ran before the end")
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if !exists(done) {
		t.Error("had not run when stop returned")
	}
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	if _, err := Start(exec.Command("/no/such/program"), "touch", done); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want that it does not exist", err)
	}
	if !exists(done) {
		t.Error("the command for afterwards did not run")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestKillEndsTheWholeGroupAtOnceAndRunsTheCommandForAfterwards(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	p, alive := shell(t, "trap '' TERM; (trap '' TERM; echo ready >&3; while :; do sleep 1; done) & wait", "touch", done)
	for range 2 { // killing twice does no harm
		p.Kill()
	}
	<-p.Exited()
	if _, err := alive.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end of every process", err)
	}
	if !exists(done) {
		t.Error("the command for afterwards did not run")
	}
	if got := p.State().String(); got != "signal: killed" {
		t.Errorf("got %s, want killed", got)
	}
}

func TestASignalIsForTheWholeGroupButForItsLeader(t *testing.T) {
	p, _ := shell(t, "trap 'exit 4' INT; echo ready >&3; while :; do sleep 0.01; done")
	p.Signal(syscall.SIGINT)
	<-p.Exited()
	if got := p.State().String(); got != "exit status 4" {
		t.Errorf("got %s, want 4", got)
	}
}

func TestTheTailKeepsTheEnd(t *testing.T) {
	var kept tail
	for i := range 10_000 {
		fmt.Fprintf(&kept, "line %d\n", i)
	}
	got := kept.String()
	if len(got) > 4<<10 || !strings.HasSuffix(got, "line 9998\nline 9999") {
		t.Errorf("kept %d bytes, ending %q", len(got), got[len(got)-20:])
	}
}
