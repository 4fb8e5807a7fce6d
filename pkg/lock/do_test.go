package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

var errWork = errors.New("the work failed")

func TestDoReturnsWhatTheWorkReturned(t *testing.T) {
	for _, want := range []error{nil, errWork} {
		s := newStub()
		c := &lock.Client{Service: s}
		var token fence.Token
		err := c.Do(t.Context(), "a/b", func(_ context.Context, got fence.Token) error {
			token = got
			if _, err := c.TryAcquire(t.Context(), "a/b"); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("got %v during the work, want ErrHeld", err)
			}
			return want
		})
		if err != want || !token.Valid() {
			t.Errorf("got %v, token %d, want %v", err, token, want)
		}
		free(t, s)
	}
}

func TestDoReleasesWhenTheWorkPanics(t *testing.T) {
	s := newStub()
	func() {
		defer func() {
			if got := recover(); got != "a bug" {
				t.Errorf("recovered %v, want the panic of the work", got)
			}
		}()
		_ = (&lock.Client{Service: s}).Do(t.Context(), "a/b", func(context.Context, fence.Token) error { panic("a bug") })
	}()
	free(t, s)
}

func TestWorkThatOutlivedItsLockIsTold(t *testing.T) {
	for _, result := range []error{nil, errWork, context.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.renew = silence
			err := (&lock.Client{Service: s}).Do(t.Context(), "a/b", func(ctx context.Context, _ fence.Token) error {
				<-ctx.Done()
				return result
			})
			if !errors.Is(err, lock.ErrUnconfirmed) || !errors.Is(err, lock.ErrNotHeld) || result != nil && !errors.Is(err, result) {
				t.Errorf("got %v, want ErrUnconfirmed and %v", err, result)
			}
		})
	}
}

func TestWorkThatReturnsTheReasonIsNotToldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = silence
		var why error
		err := (&lock.Client{Service: s}).Do(t.Context(), "a/b", func(ctx context.Context, _ fence.Token) error {
			<-ctx.Done()
			why = context.Cause(ctx)
			return why
		})
		if err != why || !errors.Is(err, lock.ErrUnconfirmed) {
			t.Errorf("got %v, want %v", err, why)
		}
	})
}

// The work is told to stop, and the lock is kept until it has.
func TestTheWorkEndsWithTheCallersContextAndTheLockWithTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := (&lock.Client{Service: s}).Do(ctx, "a/b", func(ctx context.Context, _ fence.Token) error {
			<-ctx.Done()
			if got := context.Cause(ctx); got != context.Canceled {
				t.Errorf("ended with %v, want the caller's reason", got)
			}
			time.Sleep(time.Minute) // cleaning up
			if _, err := (&lock.Client{Service: s}).TryAcquire(t.Context(), "a/b"); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("got %v, want ErrHeld: the work has not returned", err)
			}
			return errWork
		})
		if err != errWork {
			t.Errorf("got %v, want what the work returned", err)
		}
		free(t, s)
	})
}

type key struct{}

func TestTheValuesOfTheContextGoEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		defer cancel()
		check := func(where string, ctx context.Context) {
			if ctx.Value(key{}) != "value" {
				t.Errorf("%s: the value is not there", where)
			}
		}
		s := newStub()
		s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			check("acquire", ctx)
			return s.Service.Acquire(ctx, q)
		}
		s.renew = func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			check("renew", ctx)
			return s.Service.Renew(ctx, q)
		}
		s.release = func(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
			check("release", ctx)
			return s.Service.Release(ctx, q)
		}
		c := &lock.Client{Service: s, Observe: func(ctx context.Context, e lock.Event) { check(string(e.Kind), ctx) }}
		err := c.Do(ctx, "a/b", func(ctx context.Context, _ fence.Token) error {
			check("work", ctx)
			time.Sleep(ttl)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		h, err := c.TryAcquire(ctx, "a/b")
		if err != nil {
			t.Fatal(err)
		}
		check("held", h.Context())
		if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestAReleaseThatFailsIsNoErrorOfDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.release = failing[lease.ReleaseRequest, lease.State](lease.ErrUnavailable)
		var seen events
		c := &lock.Client{Service: s, Observe: seen.observe}
		if err := c.Do(t.Context(), "a/b", func(context.Context, fence.Token) error { return nil }); err != nil {
			t.Error(err)
		}
		last := seen.all[len(seen.all)-1]
		if last.Kind != lock.Released || !errors.Is(last.Err, lease.ErrUnavailable) {
			t.Errorf("told of %v, want the failed release", last)
		}
		time.Sleep(ttl)
	})
}

func TestDoWithoutTheLockDoesNothing(t *testing.T) {
	s := newStub()
	s.acquire = refuse(lease.ErrForbidden)
	err := (&lock.Client{Service: s}).Do(t.Context(), "a/b", func(context.Context, fence.Token) error {
		t.Error("worked")
		return nil
	})
	if !errors.Is(err, lease.ErrForbidden) {
		t.Errorf("got %v, want ErrForbidden", err)
	}
}
