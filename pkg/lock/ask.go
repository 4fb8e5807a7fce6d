package lock

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// answerTime is how long an answer may take, beyond the wait.
const answerTime = 5 * time.Second

// errNotAwaited means that the context ended before there was an answer.
var errNotAwaited = errors.New("the service has not answered")

// errGoexit is the error of a service that did not return.
var errGoexit = errors.New("the service has ended its goroutine")

// ask makes one request, and returns at the end of ctx even if the service does
// not. A panic in the service is the caller's, as if it had called.
func (c *Client) ask(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	if ctx.Done() == nil {
		return c.askOnce(ctx, q)
	}
	type answer struct {
		lease lease.Lease
		err   error
		bug   string
	}
	answered := make(chan answer, 1)
	go func() {
		a := answer{err: errGoexit}
		defer func() {
			if bug := recover(); bug != nil {
				a.bug = fmt.Sprintf("%v\n\n%s", bug, debug.Stack())
			}
			answered <- a
		}()
		a.lease, a.err = c.askOnce(ctx, q)
	}()
	select {
	case a := <-answered:
		if a.bug != "" {
			panic("lock: the service panicked: " + a.bug)
		}
		return a.lease, a.err
	case <-ctx.Done():
		return lease.Lease{}, errNotAwaited
	}
}

func (c *Client) askOnce(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, q.Wait+answerTime)
	defer cancel()
	return c.Service.Acquire(ctx, q)
}

// protected calls a service where there is no caller to whom a panic could go.
func protected[A any](call func() (A, error)) (a A, err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fmt.Errorf("the service panicked: %v\n\n%s", bug, debug.Stack())
		}
	}()
	return call()
}
