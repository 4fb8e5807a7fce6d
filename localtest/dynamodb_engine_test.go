package localtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
)

// taken is a port that somebody listens at.
func taken(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestAPortThatIsTakenInBetweenIsNotUsed(t *testing.T) {
	newMachine(t, "dynoxide")
	other, err := strconv.Atoi(portOf(open(t, "")))
	if err != nil {
		t.Fatal(err)
	}
	e, err := findEngine(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ports := []int{taken(t), other} // one is silent, one would pass the probe
	d, err := e.start(t.Context(), func() (int, error) {
		if len(ports) == 0 {
			return freePort()
		}
		port := ports[0]
		ports = ports[1:]
		return port, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(ports) > 0 {
		t.Errorf("got %s, which is somebody else's", d.Endpoint)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestStartGivesUpWhenEveryPortIsTaken(t *testing.T) {
	newMachine(t, "dynoxide")
	e, err := findEngine(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	port, picked := taken(t), 0
	_, err = e.start(t.Context(), func() (int, error) { picked++; return port, nil })
	if err == nil || !strings.Contains(err.Error(), "in use") || picked != 5 {
		t.Errorf("got error %v after %d ports, want the engine's own after 5", err, picked)
	}
}

func TestAnEngineThatIsStartedIsProbedToo(t *testing.T) {
	newMachine(t, "dynoxide")
	broken := behind(t, open(t, ""), func(_ int64, _ *http.Response, body map[string]any) { delete(body, "Item") })
	port, err := strconv.Atoi(broken[strings.LastIndex(broken, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{name: "sleep", wait: time.Minute, run: func(int) (*process.Process, error) {
		return process.Start(exec.Command("/bin/sleep", "1000")) // it answers at that port, in a way
	}}
	_, err = e.start(t.Context(), func() (int, error) { return port, nil })
	if err == nil || !strings.Contains(err.Error(), "ReturnValuesOnConditionCheckFailure") {
		t.Errorf("got error %v, want that the old item is missing", err)
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	var p *process.Process
	e := &engine{name: "sleep", wait: time.Hour, run: func(int) (_ *process.Process, err error) {
		p, err = process.Start(exec.Command("sleep", "1000"))
		cancel(over)
		return p, err
	}}
	if _, err := e.start(ctx, freePort); !errors.Is(err, over) {
		t.Errorf("got error %v, want %v", err, over)
	}
	if !p.HasExited() {
		t.Error("the engine still runs")
	}
}

func TestStartGivesUpOnAnEngineThatNeverAnswers(t *testing.T) {
	e := &engine{name: "sleep", wait: time.Millisecond, run: func(int) (*process.Process, error) {
		return process.Start(exec.Command("sleep", "1000"))
	}}
	_, err := e.start(t.Context(), freePort)
	if err == nil || !strings.Contains(err.Error(), "sleep is not ready") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want that it is not ready", err)
	}
}
