package gateway

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// answer is how an invoke ended.
type answer struct {
	payload []byte
	err     error
}

// process is one execution environment: an operating system process and the
// Runtime API that it alone talks to. Each has its own listener, since the
// address is all that tells one process's requests from another's.
type process struct {
	lambda *Lambda
	cmd    *exec.Cmd
	api    *http.Server
	events chan *invocation // what GET next hands out; holds one
	ended  chan struct{}    // closed when the process is gone and its place free

	mu      sync.Mutex
	current *invocation // taken and not answered
	failure error       // what the process reported before its first event
	reaped  bool        // its pid may belong to another by now
}

// invocation is one event on its way through a process.
type invocation struct {
	id       string
	event    []byte
	taken    chan struct{} // closed when the process has the event
	answered chan answer   // holds one
}

// start starts a process. The caller holds the lock of the Lambda.
func (l *Lambda) start() (*process, error) {
	bootstrap, err := filepath.Abs(l.Bootstrap)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	output, stdout, err := os.Pipe()
	if err != nil {
		listener.Close()
		return nil, err
	}
	root := filepath.Dir(bootstrap)
	cmd := exec.Command(bootstrap)
	cmd.Dir = root
	cmd.Stdout, cmd.Stderr = stdout, stdout
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
	err = startProcess(cmd)
	stdout.Close()
	if err != nil {
		listener.Close()
		output.Close()
		return nil, err
	}
	p := &process{lambda: l, cmd: cmd, events: make(chan *invocation, 1), ended: make(chan struct{})}
	p.api = &http.Server{Handler: p.runtimeAPI()}
	go p.api.Serve(listener)
	l.wg.Go(func() { p.wait(output) })
	return p, nil
}

// run gives the process an event and returns its answer. Taken false means that
// the process ended before it had the event.
func (p *process) run(event []byte) (a answer, taken bool) {
	inv := &invocation{id: invokeID(), event: event, taken: make(chan struct{}), answered: make(chan answer, 1)}
	p.events <- inv
	limit := time.NewTimer(cmp.Or(p.lambda.initTimeout, 10*time.Second))
	defer limit.Stop()
	select {
	case <-inv.taken:
		limit.Reset(p.timeout())
	case <-p.ended:
	case <-limit.C:
		p.kill()
		<-p.ended
		return answer{err: ErrTimeout}, true
	}
	select {
	case a = <-inv.answered:
		return a, true
	case <-p.ended:
	case <-limit.C:
		if p.settle(inv.id) != nil {
			p.kill()
			<-p.ended
			return answer{err: ErrTimeout}, true
		}
		return <-inv.answered, true // it came just in time
	}
	select {
	case a = <-inv.answered: // its last words
		return a, true
	default:
	}
	a.err = p.epitaph(inv.id)
	select {
	case <-inv.taken:
		return a, true
	default:
		return a, false
	}
}

// epitaph says why a process that has ended did not answer.
func (p *process) epitaph(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return p.failure
	}
	return &FunctionError{"Runtime.ExitError", "RequestId: " + id + " Error: Runtime exited with error: " + p.cmd.ProcessState.String()}
}

func (p *process) timeout() time.Duration { return cmp.Or(p.lambda.Timeout, 29*time.Second) }

// settle ends the invoke with this id and returns it, or nil if there is none
// such under way. Whoever settles an invoke answers it.
func (p *process) settle(id string) *invocation {
	p.mu.Lock()
	defer p.mu.Unlock()
	inv := p.current
	if inv == nil || inv.id != id {
		return nil
	}
	p.current = nil
	return inv
}

// kill ends the process and all that it started.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it has ended by itself
	}
}

// wait waits for the process to end and clears up after it.
func (p *process) wait(output *os.File) {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		p.copyLines(output)
	}()
	_ = p.cmd.Wait() // the status is in ProcessState
	p.kill()         // what it started and left behind, which keeps the group's id taken
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	// A child that left the group may hold the pipe open for ever.
	_ = output.SetReadDeadline(time.Now().Add(time.Second))
	<-logged
	output.Close()
	p.api.Close()
	p.lambda.forget(p)
	close(p.ended)
}

// logging keeps the lines of all functions apart, so that they may share a log.
var logging sync.Mutex

func (p *process) copyLines(output io.Reader) {
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 && p.lambda.Log != nil {
			if err != nil {
				line = append(line, '\n')
			}
			logging.Lock()
			_, _ = p.lambda.Log.Write(line) // a log that fails is no reason for the function to
			logging.Unlock()
		}
		if err != nil {
			return
		}
	}
}
