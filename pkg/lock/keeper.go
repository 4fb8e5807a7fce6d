package lock

import (
	"container/heap"
	"sync"
	"time"
)

// A keeper keeps all locks of a client: it ends trust whose time is over, and has
// renewals sent when they are due. It costs one timer, and no goroutine at rest,
// however many locks there are.
//
// Renewals under way are bounded, or an outage would cost a connection and some
// goroutines for each lock. Where not all can be sent at once, the lock whose
// trust ends first has the first place, and the time of a request begins when it
// has its place. How many places there are follows from the answers, as TCP finds
// out what a network can carry: while others wait, each answer widens the window by a
// fifth of a place, and an attempt that fails narrows it by a quarter, a few times a second.
// What has been under way for a second counts no more. So requests that hang do
// not keep those out that would get through, and a service that is slow, but
// works, soon has as many as it needs.
type keeper struct {
	mu    sync.Mutex
	timer *time.Timer
	at    time.Time // when it goes off

	looks agenda // at whether trust has ended
	due   agenda // renewals, by when they are to be sent
	ready agenda // renewals that wait for a place, by when trust ends

	window float64
	cut    time.Time  // when it was narrowed last
	young  []*attempt // that have a place, or had one; oldest first
	places int        // taken

	wall time.Duration // what the wall clock has gained on the monotonic one
	base time.Time
}

const (
	firstWindow = 256
	leastWindow = 16
	mostWindow  = 1024

	// youth is how long an attempt takes a place.
	youth = time.Second

	// cutPause is how long the window is left as it is after it was narrowed.
	cutPause = 200 * time.Millisecond

	// rest is how long the place of an attempt that failed stays taken: a service
	// that refuses at once is not to be asked as fast as it refuses.
	rest = 100 * time.Millisecond

	// suspendCheck is how often the wall clock is looked at: timers stand still
	// while the machine is suspended, and go off late by as much.
	suspendCheck = time.Second
)

// An attempt is one renewal under way.
type attempt struct {
	began  time.Time
	placed bool
}

// look has h looked at again at its deadline.
func (k *keeper) look(h *Held, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.base.IsZero() {
		k.base = time.Now()
		k.wall = k.gained()
	}
	k.looks.put(&h.look, at)
	k.set()
}

// next has h renewed at a time. Unless it is, trust ends at ends.
func (k *keeper) next(h *Held, at, ends time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h.next.ends = ends
	k.due.put(&h.next, at)
	k.set()
}

// drop forgets h.
func (k *keeper) drop(h *Held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h.look.leave()
	h.next.leave()
	if len(k.looks) == 0 && k.timer != nil {
		k.timer.Stop()
		k.at = time.Time{}
	}
}

// wake does what is due.
func (k *keeper) wake() {
	k.mu.Lock()
	k.at = time.Time{}
	now := time.Now()
	var looks []*Held
	if len(k.looks) == 0 {
		k.mu.Unlock()
		return
	}
	if g := k.gained(); g > k.wall+time.Millisecond {
		for _, e := range k.looks { // the wall clock may have ended any of them
			looks = append(looks, e.held)
		}
		k.wall = g
	} else {
		k.wall = min(k.wall, g)
		for len(k.looks) > 0 && !k.looks[0].at.After(now) {
			looks = append(looks, k.looks[0].held)
			k.looks[0].leave()
		}
	}
	for len(k.due) > 0 && !k.due[0].at.After(now) {
		e := k.due[0]
		k.ready.put(e, e.ends)
	}
	k.send(now)
	k.set()
	k.mu.Unlock()

	var lost []func()
	for _, h := range looks {
		if tell := h.lookAgain(); tell != nil {
			lost = append(lost, tell)
		}
	}
	if len(lost) > 0 {
		go func() { // an observer that is slow must not keep the other locks waiting
			for _, tell := range lost {
				tell()
			}
		}()
	}
}

// send begins the renewals for which there is a place.
func (k *keeper) send(now time.Time) {
	for len(k.young) > 0 && (!k.young[0].placed || now.Sub(k.young[0].began) >= youth) {
		k.free(k.young[0])
		k.young = k.young[1:]
	}
	for len(k.ready) > 0 && k.places < int(k.window) {
		h := k.ready[0].held
		h.next.leave()
		a := &attempt{began: now, placed: true}
		k.young = append(k.young, a)
		k.places++
		go h.renew(a)
	}
}

func (k *keeper) free(a *attempt) {
	if a.placed {
		a.placed = false
		k.places--
	}
}

// ended is told that an attempt has ended, and whether the service took it on.
func (k *keeper) ended(a *attempt, answered bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if answered {
		if len(k.ready) > 0 {
			k.window = min(k.window+0.2, mostWindow)
		}
		k.leave(a, now)
		return
	}
	if now.Sub(k.cut) >= cutPause {
		k.cut = now
		k.window = max(k.window*3/4, leastWindow)
	}
	time.AfterFunc(rest, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.leave(a, time.Now())
	})
}

// leave gives the place of an attempt to the next.
func (k *keeper) leave(a *attempt, now time.Time) {
	k.free(a)
	k.send(now)
	k.set()
}

// set sets the timer to what comes next.
func (k *keeper) set() {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if len(k.looks) > 0 {
		sooner(k.looks[0].at)
		sooner(time.Now().Add(suspendCheck))
	}
	if len(k.due) > 0 {
		sooner(k.due[0].at)
	}
	if len(k.ready) > 0 && len(k.young) > 0 {
		sooner(k.young[0].began.Add(youth))
	}
	if at.IsZero() || !k.at.IsZero() && !at.Before(k.at) {
		return // it goes off early enough, and finds out then
	}
	k.at = at
	if k.timer == nil {
		k.timer = time.AfterFunc(time.Until(at), k.wake)
		return
	}
	k.timer.Reset(time.Until(at))
}

// gained is what the wall clock has gained on the monotonic one: while the
// machine was suspended, or by a step.
func (k *keeper) gained() time.Duration { return wall().Sub(k.base.Round(0)) - time.Since(k.base) }

// An entry is a lock in an agenda, or in none.
type entry struct {
	held  *Held
	at    time.Time
	ends  time.Time // trust
	in    *agenda
	index int
}

// leave takes the entry out of the agenda that it is in.
func (e *entry) leave() {
	if e.in != nil {
		heap.Remove(e.in, e.index)
		e.in = nil
	}
}

// An agenda is a heap of entries, by time.
type agenda []*entry

func (a *agenda) put(e *entry, at time.Time) {
	e.leave()
	e.at, e.in = at, a
	heap.Push(a, e)
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

func (a *agenda) Push(e any) {
	e.(*entry).index = len(*a)
	*a = append(*a, e.(*entry))
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return e
}
