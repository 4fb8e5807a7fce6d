package gateway

import (
	"bytes"
	"cmp"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
)

// answer is how an invoke ended.
type answer struct {
	payload []byte
	err     error
}

// environment is one execution environment: an operating system process and the
// Runtime API that it alone talks to. Each has its own listener, since the
// address is all that tells one process's requests from another's.
type environment struct {
	*process.Process
	lambda   *Lambda
	function string // its name
	api      *http.Server
	events   chan *invocation // what GET next hands out; holds one
	ended    chan struct{}    // closed when the process is gone and its place free

	mu      sync.Mutex
	current *invocation // taken and not answered
	failure error       // what the process reported before its first event
}

// invocation is one event on its way through a process.
type invocation struct {
	id       string
	event    []byte
	taken    chan struct{} // closed when the process has the event
	answered chan answer   // holds one
}

// start starts an environment. The caller holds the lock of the Lambda.
func (l *Lambda) start() (*environment, error) {
	bootstrap, err := filepath.Abs(l.Bootstrap)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(bootstrap)
	cmd := exec.Command(bootstrap)
	cmd.Dir = root
	printed := &log{to: l.Log}
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.Env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=en_US.UTF-8", "TZ=:UTC",
		"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(),
		"AWS_LAMBDA_FUNCTION_NAME=" + filepath.Base(root),
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023",
		"AWS_REGION=" + region, "AWS_DEFAULT_REGION=" + region,
		"LAMBDA_TASK_ROOT=" + root, "_HANDLER=bootstrap",
	}, l.Env...)
	p, err := process.Start(cmd)
	if err != nil {
		listener.Close()
		return nil, err
	}
	e := &environment{
		Process: p, lambda: l, function: filepath.Base(root),
		events: make(chan *invocation, 1), ended: make(chan struct{}),
	}
	e.api = &http.Server{Handler: e.runtimeAPI()}
	go e.api.Serve(listener)
	l.wg.Go(func() {
		<-p.Exited()
		printed.end()
		e.api.Close()
		l.forget(e)
		close(e.ended)
	})
	return e, nil
}

// run gives the process an event and returns its answer. Taken false means that
// the process ended before it had the event.
func (e *environment) run(event []byte) (a answer, taken bool) {
	inv := &invocation{id: invokeID(), event: event, taken: make(chan struct{}), answered: make(chan answer, 1)}
	e.events <- inv
	limit := time.NewTimer(cmp.Or(e.lambda.initTimeout, 10*time.Second))
	defer limit.Stop()
	select {
	case <-inv.taken:
		limit.Reset(e.timeout())
	case <-e.ended:
	case <-limit.C:
		e.Kill()
		<-e.ended
		return answer{err: ErrTimeout}, true
	}
	select {
	case a = <-inv.answered:
		return a, true
	case <-e.ended:
	case <-limit.C:
		if e.settle(inv.id) != nil {
			e.Kill()
			<-e.ended
			return answer{err: ErrTimeout}, true
		}
		return <-inv.answered, true // it came just in time
	}
	select {
	case a = <-inv.answered: // its last words
		return a, true
	default:
	}
	a.err = e.epitaph(inv.id)
	select {
	case <-inv.taken:
		return a, true
	default:
		return a, false
	}
}

// epitaph says why a process that has ended did not answer.
func (e *environment) epitaph(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure != nil {
		return e.failure
	}
	message := "RequestId: " + id + " Error: Runtime exited with error: " + e.State().String()
	return &FunctionError{"Runtime.ExitError", message}
}

func (e *environment) timeout() time.Duration { return cmp.Or(e.lambda.Timeout, 29*time.Second) }

// settle ends the invoke with this id and returns it, or nil if there is none
// such under way. Whoever settles an invoke answers it.
func (e *environment) settle(id string) *invocation {
	e.mu.Lock()
	defer e.mu.Unlock()
	inv := e.current
	if inv == nil || inv.id != id {
		return nil
	}
	e.current = nil
	return inv
}

// A log receives what a function prints, a line at a time, also from several
// functions that share it.
type log struct {
	to      io.Writer // nil discards
	partial []byte    // of the line that has no end yet
}

// logging keeps the lines of all functions apart.
var logging sync.Mutex

func (l *log) Write(b []byte) (int, error) {
	if l.to == nil {
		return len(b), nil
	}
	l.partial = append(l.partial, b...)
	for {
		n := bytes.IndexByte(l.partial, '\n') + 1
		if n == 0 {
			return len(b), nil
		}
		logging.Lock()
		_, _ = l.to.Write(l.partial[:n]) // a log that fails is no reason for the function to
		logging.Unlock()
		l.partial = l.partial[n:]
	}
}

// end ends a line that the function did not end.
func (l *log) end() {
	if len(l.partial) > 0 {
		_, _ = l.Write([]byte{'\n'}) // cannot fail
	}
}
