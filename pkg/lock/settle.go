package lock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// mostAbandoned bounds what is remembered of an outage. What is forgotten runs
// out by itself.
const mostAbandoned = 10_000

// A settler ends what requests may have got, or may still get, for which nobody
// waits any more. It has one goroutine to end them and one to tell the observer,
// and those only while there is something to do; the requests are never made again.
type settler struct {
	mu       sync.Mutex
	queue    []*abandoned            // to be ended
	untold   []*abandoned            // ended; the observer is not told yet
	open     map[*abandoned]struct{} // all of them, and those under way
	settling bool                    // there is a goroutine for queue
	telling  bool                    // there is a goroutine for untold

	// Of the goroutine for queue:
	failures int       // in a row
	rest     time.Time // nothing is asked before
}

// An abandoned request was given up before its outcome was known.
type abandoned struct {
	ctx     context.Context // for its values
	lock    string
	release lease.ReleaseRequest
	due     time.Time     // nothing is done before
	arrived time.Time     // nothing of the request is under way any more
	end     time.Time     // whatever it got has run out
	err     error         // how it ended
	settled chan struct{} // closed when the observer has been told of it
}

// giveUp ends what q got, or may still get: the lease l, or what the service
// knows of its request id if l is zero.
func (c *Client) giveUp(ctx context.Context, q lease.AcquireRequest, l lease.Lease) {
	now := time.Now()
	a := &abandoned{
		ctx:     context.WithoutCancel(ctx),
		lock:    q.Name.String(),
		release: lease.ReleaseRequest{Name: q.Name, RequestID: q.RequestID},
		arrived: now.Add(lease.WithdrawnFor),
		end:     now.Add(q.Wait + answerTime + q.TTL),
		settled: make(chan struct{}),
	}
	if l.Token != 0 {
		a.release = lease.ReleaseRequest{Name: q.Name, LeaseID: l.ID, Token: l.Token}
	}
	s := &c.own().settler
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == mostAbandoned {
		s.close(s.queue[0])
		s.queue = s.queue[1:]
	}
	if s.open == nil {
		s.open = make(map[*abandoned]struct{})
	}
	s.open[a] = struct{}{}
	if s.queue = append(s.queue, a); !s.settling {
		s.settling = true
		go c.settle(s)
	}
}

// Settle waits until the requests that were given up before its call hold nothing
// any more and [Client.Observe] has been told, or ctx ends. A program calls it
// before it ends: a call that was cancelled while it waited for a lock returns at
// once, and the service is told in the background. If it is not told, it can still
// grant the lock, to nobody, for a TTL.
func (c *Client) Settle(ctx context.Context) error {
	s := &c.own().settler
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, a := range open {
		select {
		case <-a.settled:
		case <-ctx.Done():
			return reason(ctx)
		}
	}
	return nil
}

// settle runs until there is nothing left to settle.
func (c *Client) settle(s *settler) {
	var a *abandoned
	defer func() {
		if a != nil { // the service has ended this goroutine
			c.judge(s, a, errGoexit)
			go c.settle(s)
		}
	}()
	for a = s.next(); a != nil; a = s.next() {
		sleep(context.Background(), max(time.Until(a.due), time.Until(s.rest)))
		c.judge(s, a, c.settleOnce(a))
	}
}

// judge decides by an answer whether a is over.
func (c *Client) judge(s *settler, a *abandoned, err error) {
	v, now := lease.Classify(err), time.Now()
	switch {
	case errors.Is(err, lease.ErrTooManyWithdrawn) && now.Before(a.arrived):
		a.due = a.arrived // it may still be granted: this is looked at when it no longer can be
		s.back(a)
		return
	case errors.Is(err, lease.ErrTooManyWithdrawn):
		err = nil // it holds nothing
	case (v.Repeat || v.Repair) && now.Before(a.end):
		s.failures++
		v.Repair = false
		s.rest = now.Add(min(pauseAfter(v, s.failures)<<min(s.failures/8, 3), 10*time.Second))
		s.back(a)
		return
	case v.Outcome == lease.Refused && !v.Repair && v != lease.Classify(lease.ErrInvalid):
		err = nil // it is over
	}
	s.failures, a.err = 0, err
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Observe == nil {
		s.close(a)
		return
	}
	if s.untold = append(s.untold, a); !s.telling {
		s.telling = true
		go c.tellSettled(s)
	}
}

func (c *Client) settleOnce(a *abandoned) error {
	ctx, cancel := context.WithTimeout(a.ctx, releaseTry)
	defer cancel()
	_, err := protected(func() (lease.State, error) { return c.Service.Release(ctx, a.release) })
	return err
}

// tellSettled tells the observer until there is nothing left to tell: one that is
// slow keeps nothing from being settled.
func (c *Client) tellSettled(s *settler) {
	for {
		s.mu.Lock()
		if len(s.untold) == 0 {
			s.telling = false
			s.mu.Unlock()
			return
		}
		a := s.untold[0]
		s.untold = s.untold[1:]
		s.mu.Unlock()
		c.tellOne(s, a)
	}
}

// tellOne tells of a. When the observer ends the goroutine, another tells the rest.
func (c *Client) tellOne(s *settler, a *abandoned) {
	returned := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.close(a); !returned {
			go c.tellSettled(s)
		}
	}()
	c.tell(a.ctx, Event{Kind: GivenUp, Lock: a.lock, Token: a.release.Token, Err: a.err})
	returned = true
}

// close ends the wait for a.
func (s *settler) close(a *abandoned) {
	delete(s.open, a)
	close(a.settled)
}

// next takes the first of the queue that is due, or else the first. Without one,
// the settler is idle.
func (s *settler) next() *abandoned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.settling = false
		return nil
	}
	now := time.Now()
	i := max(slices.IndexFunc(s.queue, func(a *abandoned) bool { return !a.due.After(now) }), 0)
	a := s.queue[i]
	s.queue = slices.Delete(s.queue, i, i+1)
	return a
}

// back puts one at the end: others may have better luck.
func (s *settler) back(a *abandoned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, a)
}
