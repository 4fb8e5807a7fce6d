package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// mostAbandoned bounds what is remembered of an outage. What is forgotten runs
// out by itself.
const mostAbandoned = 10_000

// A settler ends what requests may have got, or may still get, for which nobody
// waits any more. It has one goroutine, and that only while there are any; the
// requests are never made again.
type settler struct {
	mu    sync.Mutex
	queue []abandoned
	idle  chan struct{} // closed when there are none
}

// An abandoned request was given up before its outcome was known.
type abandoned struct {
	ctx     context.Context // for its values
	lock    string
	release lease.ReleaseRequest
	due     time.Time // nothing is done before
	arrived time.Time // nothing of the request is under way any more
	end     time.Time // whatever it got has run out
}

// giveUp ends what q got, or may still get: the lease l, or what the service
// knows of its request id if l is zero.
func (c *Client) giveUp(ctx context.Context, q lease.AcquireRequest, l lease.Lease) {
	now := time.Now()
	a := abandoned{
		ctx:     context.WithoutCancel(ctx),
		lock:    q.Name.String(),
		release: lease.ReleaseRequest{Name: q.Name, RequestID: q.RequestID},
		arrived: now.Add(lease.WithdrawnFor),
		end:     now.Add(q.Wait + answerTime + q.TTL),
	}
	if l.Token != 0 {
		a.release = lease.ReleaseRequest{Name: q.Name, LeaseID: l.ID, Token: l.Token}
	}
	s := &c.own().settler
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == mostAbandoned {
		s.queue = s.queue[1:]
	}
	if s.queue = append(s.queue, a); s.idle == nil {
		s.idle = make(chan struct{})
		go c.settle(s)
	}
}

// Settle waits until the requests that were given up hold nothing any more, or
// ctx ends. A program calls it before it ends: a call that was cancelled while it
// waited for a lock returns at once, and the service is told in the background.
// If it is not told, it can still grant the lock, to nobody, for a TTL.
func (c *Client) Settle(ctx context.Context) error {
	s := &c.own().settler
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return reason(ctx)
	}
}

// settle runs until there is nothing left to settle.
func (c *Client) settle(s *settler) {
	for failures := 0; ; {
		a, ok := s.next()
		if !ok {
			return
		}
		sleep(context.Background(), time.Until(a.due))
		err := c.settleOnce(a)
		v := lease.Classify(err)
		if errors.Is(err, lease.ErrTooManyWithdrawn) {
			if time.Now().Before(a.arrived) { // it may still be granted: this is looked at when it no longer can be
				a.due = a.arrived
				s.back(a)
				continue
			}
			v = lease.Verdict{Outcome: lease.Done} // it holds nothing
			err = nil
		}
		if (v.Repeat || v.Repair) && time.Now().Before(a.end) {
			failures++
			s.back(a)
			v.Repair = false
			sleep(context.Background(), min(pauseAfter(v, failures)<<min(failures/8, 3), 10*time.Second))
			continue
		}
		failures = 0
		if v.Outcome == lease.Refused && !v.Repair && v != lease.Classify(lease.ErrInvalid) {
			err = nil // it is over
		}
		c.tell(a.ctx, Event{Kind: GivenUp, Lock: a.lock, Token: a.release.Token, Err: err})
	}
}

func (c *Client) settleOnce(a abandoned) error {
	ctx, cancel := context.WithTimeout(a.ctx, releaseTry)
	defer cancel()
	_, err := protected(func() (lease.State, error) { return c.Service.Release(ctx, a.release) })
	return err
}

// next takes the first of the queue that is due, or else the first. Without one,
// the settler is idle.
func (s *settler) next() (abandoned, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		close(s.idle)
		s.idle = nil
		return abandoned{}, false
	}
	now := time.Now()
	i := max(slices.IndexFunc(s.queue, func(a abandoned) bool { return !a.due.After(now) }), 0)
	a := s.queue[i]
	s.queue = slices.Delete(s.queue, i, i+1)
	return a, true
}

// back puts one at the end: others may have better luck.
func (s *settler) back(a abandoned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, a)
}
