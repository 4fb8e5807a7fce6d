package dynamolease_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

func withdrawalOf(q lease.AcquireRequest) lease.ReleaseRequest {
	return lease.ReleaseRequest{Name: q.Name, RequestID: q.RequestID}
}

// withdrawn releases by request id over the good line, and checks what is found.
func (l line) withdrawn(q lease.AcquireRequest, want lease.Ending) {
	l.Helper()
	if s := must[lease.State](l.T)(l.direct.Release(l.Context(), withdrawalOf(q))); s.Ended != want {
		l.Errorf("the request ended as %d, want %d", s.Ended, want)
	}
}

func TestFaultsThatMakeAnAcquireLaterThanItsWithdrawalGrantNothing(t *testing.T) {
	behind := func(l line) { // every grant needs its second form
		l.give(l.take())
		l.store.Now = func() time.Time { return time.Now().Add(-time.Minute) }
	}
	for _, c := range []struct {
		name     string
		prepare  func(line)
		passing  int // attempts before those that are late
		metadata string
	}{
		{"fast", func(line) {}, 0, ""},
		{"fast, with metadata", func(line) {}, 0, "job"},
		{"slow", behind, 1, ""},
		{"slow, with metadata", behind, 1, "job"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, late := newLine(t, impatient), new(faultproxy.Late)
			c.prepare(l)
			before := l.state()
			q := l.request()
			q.Metadata = c.metadata
			l.proxy.Next(write, append(slices.Repeat([]faultproxy.Fault{faultproxy.Pass}, c.passing), late.Delay, late.Delay, late.Delay)...)
			_, err := l.store.Acquire(t.Context(), q)
			l.means("acquire", err, lease.ErrOutcomeUnknown)
			l.withdrawn(q, lease.Withdrawn)
			l.refused(late)
			if s := l.state(); s.Held || s.Token != before.Token {
				t.Errorf("the lock is %s, want it as before: %s", show(s), show(before))
			}
			_, err = l.direct.Acquire(t.Context(), q)
			l.means("acquire again", err, lease.ErrRequestSpent)
			l.take()
		})
	}
}

func TestFaultsThatLoseTheAnswerOfAGrantLeaveItToAWithdrawal(t *testing.T) {
	t.Parallel()
	l, late := newLine(t), new(faultproxy.Late)
	q := l.request()
	l.proxy.Next(write, late.Copy)
	must[lease.Lease](t)(l.store.Acquire(t.Context(), q))
	l.withdrawn(q, lease.Released)
	l.withdrawn(q, lease.ReleasedBefore)
	l.refused(late)
	l.give(l.take())
	l.withdrawn(q, lease.Withdrawn) // another grant has taken the place of its own
	_, err := l.direct.Acquire(t.Context(), q)
	l.means("acquire", err, lease.ErrRequestSpent)
}

func TestFaultsOfAWithdrawalAreToldAndCuredByARepeat(t *testing.T) {
	lost, dropped := faultproxy.After(faultproxy.Drop), faultproxy.Fault(faultproxy.Drop)
	throttle := faultproxy.Refuse(400, "ThrottlingException")
	for _, c := range []struct {
		name      string
		operation string
		faults    []faultproxy.Fault
		means     error
		granted   lease.Ending // what is found of a request that was granted; none after an error
		again     lease.Ending
	}{
		{"its answer is lost", write, []faultproxy.Fault{lost}, nil, lease.ReleasedBefore, lease.ReleasedBefore},
		{"it is lost, once", write, []faultproxy.Fault{dropped}, nil, lease.Released, lease.ReleasedBefore},
		{"all its answers are lost", write, []faultproxy.Fault{lost, lost, lost}, lease.ErrOutcomeUnknown, 0, lease.ReleasedBefore},
		{"it never arrives", write, []faultproxy.Fault{dropped, dropped, dropped}, lease.ErrOutcomeUnknown, 0, lease.Released},
		{"it is throttled", write, []faultproxy.Fault{throttle, throttle, throttle}, lease.ErrThrottled, 0, lease.Released},
		{"its answer is lost, and then it is throttled", write, []faultproxy.Fault{lost, throttle, throttle}, lease.ErrOutcomeUnknown, 0, lease.ReleasedBefore},
		{"its read is lost", read, []faultproxy.Fault{dropped, lost, dropped}, lease.ErrUnavailable, 0, lease.Released},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, granted := range []bool{true, false} {
				l := newLine(t)
				q := l.request()
				if granted {
					must[lease.Lease](t)(l.direct.Acquire(t.Context(), q))
				}
				l.proxy.Next(c.operation, c.faults...)
				s, err := l.store.Release(t.Context(), withdrawalOf(q))
				l.means("release", err, c.means)
				found, again := c.granted, c.again
				if !granted {
					if again = lease.Withdrawn; err == nil {
						found = lease.Withdrawn
					}
				}
				if s.Ended != found {
					t.Errorf("granted: %t: ended as %d, want %d", granted, s.Ended, found)
				}
				l.withdrawn(q, again)
				_, err = l.direct.Acquire(t.Context(), q)
				l.means("acquire", err, lease.ErrRequestSpent)
				l.take()
			}
		})
	}
}

func TestFaultsThatMakeAWithdrawalLateChangeNoOtherLease(t *testing.T) {
	for name, prepare := range map[string]func(line, lease.AcquireRequest){
		"of a lease":                   func(l line, q lease.AcquireRequest) { must[lease.Lease](l.T)(l.direct.Acquire(l.Context(), q)) },
		"of nothing":                   func(line, lease.AcquireRequest) {},
		"of nothing, beside a marker":  func(l line, _ lease.AcquireRequest) { l.withdrawn(l.request(), lease.Withdrawn) },
		"of what was released already": func(l line, q lease.AcquireRequest) { l.give(must[lease.Lease](l.T)(l.direct.Acquire(l.Context(), q))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, late := newLine(t), new(faultproxy.Late)
			q := l.request()
			prepare(l, q)
			l.proxy.Next(write, late.Copy)
			must[lease.State](t)(l.store.Release(t.Context(), withdrawalOf(q)))
			next := l.take()
			late.Arrive()
			l.heldBy(next)
			l.give(next)
		})
	}
	t.Run("of a request that was granted meanwhile", func(t *testing.T) {
		t.Parallel()
		l, late := newLine(t, impatient), new(faultproxy.Late)
		q := l.request()
		l.proxy.Next(write, late.Delay, late.Delay, late.Delay)
		_, err := l.store.Release(t.Context(), withdrawalOf(q))
		l.means("release", err, lease.ErrOutcomeUnknown)
		held := must[lease.Lease](t)(l.direct.Acquire(t.Context(), q))
		l.refused(late)
		l.heldBy(held)
	})
}

// What happens between the read and the write of a withdrawal.
func TestWhatComesBetweenTheTwoRequestsOfAWithdrawal(t *testing.T) {
	x := newTable(t)
	others := lease.ReleaseRequest{Name: contested.Name, RequestID: lease.NewID()}
	for _, c := range []struct {
		name     string
		before   func(*dynamolease.Store, lease.AcquireRequest)
		between  func(s *dynamolease.Store, q lease.AcquireRequest, request int)
		ended    lease.Ending
		err      error
		requests int
	}{
		{"nothing", nil, func(*dynamolease.Store, lease.AcquireRequest, int) {}, lease.Withdrawn, nil, 2},
		{"the grant of the request", nil, func(s *dynamolease.Store, q lease.AcquireRequest, n int) {
			if n == 2 {
				must[lease.Lease](t)(s.Acquire(t.Context(), q))
			}
		}, lease.Released, nil, 3},
		{"the grant of another", nil, func(s *dynamolease.Store, q lease.AcquireRequest, n int) {
			if n == 2 {
				x.grantAndRelease(s, q)
			}
		}, lease.Withdrawn, nil, 3}, // it made the item
		{"the grant of another, in the item that is there", func(s *dynamolease.Store, q lease.AcquireRequest) { x.grantAndRelease(s, q) },
			func(s *dynamolease.Store, q lease.AcquireRequest, n int) {
				if n == 2 {
					x.grantAndRelease(s, q)
				}
			}, lease.Withdrawn, nil, 2},
		{"its release", func(s *dynamolease.Store, q lease.AcquireRequest) { must[lease.Lease](t)(s.Acquire(t.Context(), q)) },
			func(s *dynamolease.Store, q lease.AcquireRequest, n int) {
				if n == 2 {
					must[lease.State](t)(s.Release(t.Context(), withdrawalOf(q)))
				}
			}, lease.ReleasedBefore, nil, 2},
		{"the withdrawal of another", nil, func(s *dynamolease.Store, _ lease.AcquireRequest, n int) {
			if n == 2 {
				must[lease.State](t)(s.Release(t.Context(), others))
			}
		}, lease.Withdrawn, nil, 3},
		{"the retirement of the lock", func(s *dynamolease.Store, q lease.AcquireRequest) { x.grantAndRelease(s, q) },
			func(_ *dynamolease.Store, _ lease.AcquireRequest, n int) {
				if n == 2 {
					x.forget(contested.Name)
				}
			}, lease.Withdrawn, nil, 3},
		{"the retirement of a lock with markers", func(s *dynamolease.Store, q lease.AcquireRequest) {
			must[lease.State](t)(s.Release(t.Context(), others))
		},
			func(_ *dynamolease.Store, _ lease.AcquireRequest, n int) {
				if n == 2 {
					x.forget(contested.Name)
				}
			}, lease.Withdrawn, nil, 3},
		{"something every time", nil, func(s *dynamolease.Store, _ lease.AcquireRequest, n int) {
			switch {
			case n == 1:
			case n%2 == 0:
				must[lease.State](t)(s.Release(t.Context(), others))
			default:
				x.forget(contested.Name)
			}
		}, 0, lease.ErrUnavailable, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			x.forget(contested.Name)
			now := noon
			s := x.store(&now, protocol.Rules{})
			q := contested
			q.RequestID = lease.NewID()
			if c.before != nil {
				c.before(s, q)
			}
			now++
			slow := x.between(now, func(n int) { now++; c.between(s, q, n) })
			call := new(lease.Call)
			state, err := slow.Release(lease.WithCall(t.Context(), call), withdrawalOf(q))
			if !errors.Is(err, c.err) || state.Ended != c.ended || call.Requests != c.requests {
				t.Fatalf("ended as %d, error %v, %d requests, want %d, %v, %d", state.Ended, err, call.Requests, c.ended, c.err, c.requests)
			}
			if err != nil {
				return
			}
			if item := x.item(q.Name); item["gc"] == nil || item["x"] == nil || item["lid"] != nil {
				t.Errorf("what is stored is %v", item)
			}
			now++
			if _, err := s.Acquire(t.Context(), q); !errors.Is(err, lease.ErrRequestSpent) {
				t.Errorf("acquire: got error %v", err)
			}
		})
	}
}

// A waiter looks, and tries when the lock looks free. A withdrawal may come
// before either.
func TestAWaiterEndsAtItsFirstLookAfterAWithdrawal(t *testing.T) {
	for name, c := range map[string]struct {
		at   int // the request of the waiter that the withdrawal comes before
		free bool
		sent []string // by the waiter
	}{
		"before a look":                          {2, false, []string{write, read}},
		"between a look and the try after it":    {3, true, []string{write, read, write}},
		"before a look that would have found it": {2, true, []string{write, read}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTable(t)
			holder := x.store(nil, protocol.Rules{})
			q := lease.AcquireRequest{Name: anyLease.Name, TTL: time.Hour}
			held := must[lease.Lease](t)(holder.Acquire(t.Context(), q))
			q.RequestID, q.Wait = lease.NewID(), 20*time.Second
			waiter := x.between(protocol.At(time.Now()), func(n int) {
				if n == 2 && c.free {
					must[lease.State](t)(holder.Release(t.Context(), releaseOf(held)))
				}
				if n == c.at {
					must[lease.State](t)(holder.Release(t.Context(), withdrawalOf(q)))
				}
			})
			waiter.Now = nil
			call := new(lease.Call)
			_, err := waiter.Acquire(lease.WithCall(t.Context(), call), q)
			if !errors.Is(err, lease.ErrRequestSpent) || call.Requests != len(c.sent) {
				t.Errorf("got error %v after %d requests, want it spent after %v", err, call.Requests, c.sent)
			}
			if s := must[lease.State](t)(holder.Get(t.Context(), q.Name)); s.Token != held.Token {
				t.Errorf("the lock is %s, and was held under %d", show(s), held.Token)
			}
		})
	}
}

func TestAWithdrawalIsForThePrincipalOfTheRequest(t *testing.T) {
	l := newLine(t)
	as := func(principal string) context.Context {
		return lease.WithCall(t.Context(), &lease.Call{Principal: principal})
	}
	q := l.request()
	if s := must[lease.State](t)(l.store.Release(as("role-2"), withdrawalOf(q))); s.Ended != lease.Withdrawn {
		t.Errorf("ended as %d", s.Ended)
	}
	held := must[lease.Lease](t)(l.store.Acquire(as("role-1"), q))
	_, err := l.store.Release(as("role-2"), withdrawalOf(q))
	l.means("release", err, lease.ErrRequestConflict)
	l.heldBy(held)
	if s := must[lease.State](t)(l.store.Release(as("role-1"), withdrawalOf(q))); s.Ended != lease.Released {
		t.Errorf("ended as %d", s.Ended)
	}
	_, err = l.store.Release(as("role-2"), withdrawalOf(q))
	l.means("release after its end", err, lease.ErrRequestConflict)
}

func TestAWithdrawalOnAWrongClockChangesNothing(t *testing.T) {
	x := newTable(t)
	now := noon
	right := x.store(&now, protocol.Rules{})
	for i := range 10 {
		now = noon + protocol.Instant(i)
		must[lease.State](t)(right.Release(t.Context(), lease.ReleaseRequest{Name: anyLease.Name, RequestID: lease.NewID()}))
	}
	before := x.item(anyLease.Name)
	for _, off := range []protocol.Instant{2 * minute, -2 * minute} {
		wrong := &dynamolease.Store{Client: right.Client, Table: x.name, Now: func() time.Time { return (now + off).Time() }}
		_, err := wrong.Release(t.Context(), lease.ReleaseRequest{Name: anyLease.Name, RequestID: lease.NewID()})
		if !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("off by %d ms: got error %v", off, err)
		}
		after, err := dynamolease.Decode(x.item(anyLease.Name))
		if want := must[protocol.Record](t)(dynamolease.Decode(before)); err != nil || after != want {
			t.Errorf("off by %d ms: %+v became %+v, error %v", off, want, after, err)
		}
	}
}

// What was written by a clock that is wrong, or for a call that grew too old, may
// not last for as long as it should.
func TestAWithdrawalThatWasAppliedOnAWrongClockIsUnknown(t *testing.T) {
	for name, wrong := range map[string]func(host){
		"a clock that is behind": func(h host) { h.ahead = 2 * time.Minute },
		"a clock that is ahead":  func(h host) { h.ahead = -2 * time.Minute },
		"a call that grew old": func(h host) {
			if h.gateway {
				h.now = h.now.Add(31 * time.Second)
			} else {
				h.ahead = time.Minute // without a gateway nothing tells how old it is
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(h host) {
				held := h.held()
				q := clocked
				q.RequestID = lease.NewID()
				first := h.requests + 1
				h.date = func(request int, header string) string {
					if request == first+1 {
						wrong(h)
						return h.now.Add(h.ahead).UTC().Format(http.TimeFormat)
					}
					return header
				}
				s, err := h.Release(h.call(), withdrawalOf(q))
				if !errors.Is(err, lease.ErrOutcomeUnknown) || s.Ended != 0 || h.requests != first+1 {
					t.Errorf("got %+v, error %v, after %d requests", s, err, h.requests-first+1)
				}
				h.ahead, h.date = 0, nil
				if s := h.state(); !s.Held || s.Token != held.Token {
					t.Errorf("the lock is %s", show(s))
				}
			})
		})
	}
}

// A process that was frozen between its two requests sets a marker that is old
// before it is there.
func TestAWithdrawalThatWasFrozenSetsItsMarkerAgain(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	o := s.Client.Options()
	o.HTTPClient = &hooked{o.HTTPClient, func(request int) {
		if request == 2 {
			now += 2 * minute
		}
	}, 0}
	slow := &dynamolease.Store{Client: dynamolease.NewClientFrom(o), Table: x.name, Now: s.Now}
	call := new(lease.Call)
	w := lease.ReleaseRequest{Name: anyLease.Name, RequestID: lease.NewID()}
	if state, err := slow.Release(lease.WithCall(t.Context(), call), w); err != nil || state.Ended != lease.Withdrawn || call.Requests != 3 {
		t.Errorf("got %+v, error %v, after %d requests", state, err, call.Requests)
	}
	r := must[protocol.Record](t)(dynamolease.Decode(x.item(w.Name)))
	if until := r.Markers.All()[0].Until; until != now+minute+second {
		t.Errorf("the marker lasts %v from now on", until.Sub(now))
	}
}
