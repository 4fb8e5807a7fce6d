package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	account = "123456789012"
	region  = "us-east-1" // of the function, unless Env says otherwise
)

var (
	// ErrThrottled: as many processes as Concurrency allows are at work. The
	// function did not see the event.
	ErrThrottled = errors.New("gateway: function throttled")

	// ErrTimeout: the function ran past its timeout, or did not come to ask for
	// an event in 10 seconds, and its process was killed.
	ErrTimeout = errors.New("gateway: function timed out")

	// ErrClosed: Close was called.
	ErrClosed = errors.New("gateway: lambda closed")
)

// A FunctionError is a failure of the function: what it reported, or that its
// process ended without an answer (type Runtime.ExitError).
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (e *FunctionError) Error() string { return "gateway: function: " + e.Type + ": " + e.Message }

// A Lambda runs one function. Every process has one invoke at a time; an invoke
// goes to the process that was idle last, or to a new one. Its fields must not
// change after the first Invoke. Close it to end its processes.
type Lambda struct {
	// Bootstrap is the path of the executable. The function has the name of its
	// directory, and runs in it.
	Bootstrap string

	// Env is added to the variables that Lambda sets, and wins over them. The
	// environment of this process is not passed on.
	Env []string

	// Timeout is the function's. Zero means 29 seconds.
	Timeout time.Duration

	// Concurrency is the number of processes at most. Zero means 64.
	Concurrency int

	// Log receives what the function prints, one line per Write. Several
	// Lambdas may share it. Nil discards.
	Log io.Writer

	initTimeout time.Duration // zero means 10 seconds, which is Lambda's own limit

	mu     sync.Mutex
	live   []*environment
	idle   []*environment // a stack: the last is the most recently used
	closed bool
	wg     sync.WaitGroup // invokes and processes
}

// Invoke hands an event to the function and returns what it answers. It fails
// with [ErrThrottled], [ErrTimeout], [ErrClosed] or a [*FunctionError]. The end
// of ctx ends the wait, with its cause, and not the function, as in AWS.
func (l *Lambda) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	l.mu.Lock()
	if l.closed { // Close may be waiting already
		l.mu.Unlock()
		return nil, ErrClosed
	}
	l.wg.Add(1)
	l.mu.Unlock()
	answered := make(chan answer, 1)
	go func() {
		defer l.wg.Done()
		answered <- l.invoke(event)
	}()
	select {
	case a := <-answered:
		return a.payload, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *Lambda) invoke(event []byte) answer {
	for {
		p, fresh, err := l.acquire()
		if err != nil {
			return answer{err: err}
		}
		a, taken := p.run(event)
		if taken || fresh {
			return a
		}
		// An idle process ended before it took the event, so another may have
		// it. That is usual after a panic: the runtime reports it, then exits.
	}
}

// acquire returns a process for the caller alone, and whether it is a new one.
func (l *Lambda) acquire() (p *environment, fresh bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, ErrClosed
	}
	if n := len(l.idle); n > 0 {
		p, l.idle = l.idle[n-1], l.idle[:n-1]
		return p, false, nil
	}
	if len(l.live) >= cmp.Or(l.Concurrency, 64) {
		return nil, false, ErrThrottled
	}
	if p, err = l.start(); err != nil {
		return nil, false, fmt.Errorf("gateway: start function: %w", err)
	}
	l.live = append(l.live, p)
	return p, true, nil
}

// release makes a process that has answered available to others. It need not
// have asked for its next event: that one waits until it does.
func (l *Lambda) release(p *environment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.live, p) {
		l.idle = append(l.idle, p)
	}
}

// forget frees the place of a process that has ended.
func (l *Lambda) forget(p *environment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := func(other *environment) bool { return other == p }
	l.live = slices.DeleteFunc(l.live, is)
	l.idle = slices.DeleteFunc(l.idle, is)
}

// Close kills every process, at work or not, and returns when they have ended.
// Invokes under way fail.
func (l *Lambda) Close() error {
	l.mu.Lock()
	l.closed = true
	for _, p := range l.live {
		p.Kill()
	}
	l.mu.Unlock()
	l.wg.Wait()
	return nil
}
