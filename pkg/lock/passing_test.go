package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// What is wrong in passing: credentials that have expired, policies that have not
// arrived, a stage that is deployed again.
var passing = []error{
	fmt.Errorf("%w: httplease: 401 Unauthorized", lease.ErrForbidden),
	&lease.ForbiddenError{Reason: "the security token is expired"},
	fmt.Errorf("%w: httplease: 404 Not Found", lease.ErrMisconfigured),
	lease.ErrMisconfigured,
	&lease.RetryError{Err: lease.ErrOutcomeUnknown, After: time.Second}, // 408
}

const blip = 24 * time.Second

func TestABlipOfRefusalsEndsNoElection(t *testing.T) {
	for _, err := range passing {
		t.Run(err.Error(), func(t *testing.T) {
			s := newStub()
			election(t, s, func(r *terms, all map[string]*candidate) {
				from := time.Now()
				s.mu.Lock()
				down(s, from, from.Add(blip), err)
				s.mu.Unlock()
				pass(blip + ttl)
				if r.leads == "" {
					t.Error("nobody leads after the blip")
				}
			})
		})
	}
}

func TestABlipOfRefusalsEndsNoWaitThatHadAnAnswer(t *testing.T) {
	for _, err := range passing {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			first := acquire(t, &lock.Client{Service: s.Service, TTL: time.Minute}, "a/b")
			from := time.Now().Add(5 * time.Second)
			down(s, from, from.Add(blip), err)
			time.AfterFunc(10*time.Second, func() { release(t, first) })
			started := time.Now()
			h, got := (&lock.Client{Service: s}).Acquire(t.Context(), "a/b")
			if got != nil {
				t.Fatalf("%v: got %v", err, got)
			}
			if took := time.Since(started); took > 5*time.Second+blip+10*time.Second {
				t.Errorf("%v: granted after %v", err, took)
			}
			release(t, h)
		})
	}
}

func TestARefusalAtTheStartEndsAnElection(t *testing.T) {
	for _, err := range []error{lease.ErrForbidden, lease.ErrMisconfigured, lease.ErrInvalid} {
		s := newStub()
		s.acquire = refuse(err)
		e := lock.Election{Client: &lock.Client{Service: s}, Lock: "a/b", OnElected: func(context.Context, fence.Token) error { return nil }}
		if got := e.Run(t.Context()); !errors.Is(got, err) || len(s.of("acquire")) != 1 {
			t.Errorf("got %v after %d requests, want %v at once", got, len(s.of("acquire")), err)
		}
	}
	for _, e := range []lock.Election{{}, {Client: new(lock.Client)}, {Client: new(lock.Client), Lock: "a/b", OnElected: func(context.Context, fence.Token) error { return nil }}} {
		if err := e.Run(t.Context()); !errors.Is(err, lock.ErrMisconfigured) {
			t.Errorf("got %v, want ErrMisconfigured", err)
		}
	}
}

// A way that takes long is no outage.
func TestContentionIsNoOutageHoweverLongAnAnswerTakes(t *testing.T) {
	for _, way := range []time.Duration{50, 210, 400, 900} {
		for deadline := time.Second; deadline < 10*time.Second; deadline += 700 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				first := acquire(t, &lock.Client{Service: s.Service}, "a/b")
				s.acquire = slowly(way*time.Millisecond/2, way*time.Millisecond/2, s.Service.Acquire)
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				started := time.Now()
				_, err := (&lock.Client{Service: s}).Acquire(ctx, "a/b")
				if only(t, err, "wait timeout"); time.Since(started) != deadline {
					t.Errorf("way %v, deadline %v: after %v", way, deadline, time.Since(started))
				}
				release(t, first)
				time.Sleep(time.Minute)
				free(t, s.Service)
			})
		}
	}
}

func TestATTLThatIsTooShortForTheWaySaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = slowly(time.Second, time.Second, s.Service.Acquire)
		var seen events
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := (&lock.Client{Service: s, TTL: time.Second, Observe: seen.observe}).Acquire(ctx, "a/b")
		if want := "a TTL of 1s is too short: the answer took 2s"; !errors.Is(err, lock.ErrUndecided) || !contains(err, want) {
			t.Errorf("got %v, want %s", err, want)
		}
		time.Sleep(time.Minute)
	})
}

func TestATryGoesOnWhileTheServiceCannotBeReached(t *testing.T) {
	for _, err := range []error{lease.ErrUnavailable, &lease.RetryError{Err: lease.ErrThrottled, After: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			began := time.Now()
			s.acquire = during(began, began.Add(3*time.Second), refuse(err), s.Service.Acquire)
			h, got := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b")
			if got != nil || time.Since(began) > 6*time.Second {
				t.Fatalf("%v: got %v after %v, want the lock when the service is back", err, got, time.Since(began))
			}
			release(t, h)
			began = time.Now()
			s.acquire = refuse(err)
			_, got = (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b")
			if took := time.Since(began); !errors.Is(got, lock.ErrUndecided) || took < 12*time.Second || took > ttl {
				t.Errorf("%v: got %v after %v, want ErrUndecided within a TTL", err, got, took)
			}
		})
	}
}

// It would outlast the try: there is no use in the wait.
func TestATryEndsWhenTheServiceAsksForMorePatienceThanItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = refuse(&lease.RetryError{Err: lease.ErrQuarantine, After: time.Hour})
		began := time.Now()
		_, err := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b")
		if !errors.Is(err, lease.ErrQuarantine) || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want ErrQuarantine at once", err, time.Since(began))
		}
	})
}

func TestALeaseIsNotTrustedBeyondTheTTLThatWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			l, err := s.Service.Acquire(ctx, q)
			l.Remaining = 31 * 365 * 24 * time.Hour
			return l, err
		}
		s.renew = func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			l, err := s.Service.Renew(ctx, q)
			l.Remaining = 31 * 365 * 24 * time.Hour
			return l, err
		}
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		for range 2 {
			if left := time.Until(h.Deadline()); left > ttl {
				t.Errorf("trusted for %v, want a TTL at most", left)
			}
			time.Sleep(ttl / 2)
		}
		release(t, h)
	})
}
