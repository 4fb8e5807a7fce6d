package lock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// answerTime is how long an answer may take, beyond the wait.
const answerTime = 5 * time.Second

// errNotAwaited means that the context ended before there was an answer.
var errNotAwaited = errors.New("the service has not answered")

// ask makes one request, which the end of ctx does not cancel: the service would
// go on, and what it granted would be held by nobody until it ran out. doubt says
// that an earlier try may have been granted.
func (c *Client) ask(ctx context.Context, q lease.AcquireRequest, doubt bool) (lease.Lease, error) {
	if ctx.Done() == nil {
		return c.askOnce(ctx, q)
	}
	type answer struct {
		lease lease.Lease
		err   error
	}
	answered := make(chan answer, 1)
	detached := context.WithoutCancel(ctx)
	go func() {
		l, err := c.askOnce(detached, q)
		answered <- answer{l, err}
	}()
	select {
	case a := <-answered:
		return a.lease, a.err
	case <-ctx.Done():
		go func() {
			a := <-answered
			if refused := settled(a.err) || notGranted(a.err) && !doubt; !refused {
				c.giveBack(detached, q, a.lease)
			}
		}()
		return lease.Lease{}, errNotAwaited
	}
}

func (c *Client) askOnce(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, q.Wait+answerTime)
	defer cancel()
	return c.Service.Acquire(ctx, q)
}

// giveBack releases l, which its caller does not want any more. If l is zero, the
// service is asked whether it was granted.
func (c *Client) giveBack(ctx context.Context, q lease.AcquireRequest, l lease.Lease) {
	// Should none of the tries have arrived, this one is granted and released. It
	// must not keep the lock from others any longer.
	q.Wait, q.MinHold, q.LockDelay = 0, 0, 0
	end := time.Now().Add(max(releaseTime, c.ttl()))
	for failures := 1; l.Token == 0; failures++ {
		sleep(ctx, backoff(failures))
		if time.Now().After(end) {
			return // whatever was granted has run out
		}
		var err error
		if l, err = c.askOnce(ctx, q); settled(err) {
			return
		}
	}
	h := &Held{client: c, name: q.Name.String(), lease: l}
	h.sendRelease(ctx)
}
