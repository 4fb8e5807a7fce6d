package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func TestSeveralLocksAreTakenInOrderAndReleasedInReverse(t *testing.T) {
	s := newStub()
	var order []string
	s.acquire = func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
		order = append(order, "+"+q.Name.Lock)
		return s.Service.Acquire(ctx, q)
	}
	s.release = func(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
		order = append(order, "-"+q.Name.Lock)
		return s.Service.Release(ctx, q)
	}
	names := []string{"x/b", "x/c", "x/a"}
	err := (&lock.Client{Service: s}).DoAll(t.Context(), names, func(_ context.Context, tokens map[string]fence.Token) error {
		order = append(order, "work")
		if len(tokens) != 3 || !tokens["x/a"].Valid() || !tokens["x/b"].Valid() || !tokens["x/c"].Valid() {
			t.Errorf("got tokens %v, want one for each", tokens)
		}
		return errWork
	})
	if want := []string{"+a", "+b", "+c", "work", "-c", "-b", "-a"}; !slices.Equal(order, want) || err != errWork {
		t.Errorf("got %v, error %v, want %v", order, err, want)
	}
	if !slices.Equal(names, []string{"x/b", "x/c", "x/a"}) {
		t.Errorf("the caller's names are now %v", names)
	}
}

func TestAllLocksAreHeldOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		c := &lock.Client{Service: m}
		b := acquire(t, c, "a/2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.DoAll(ctx, []string{"a/1", "a/2", "a/3"}, func(context.Context, map[string]fence.Token) error {
			t.Error("worked")
			return nil
		})
		if !errors.Is(err, lock.ErrWaitTimeout) {
			t.Errorf("got %v, want ErrWaitTimeout", err)
		}
		release(t, b)
		for _, name := range []string{"a/1", "a/2", "a/3"} {
			h, err := c.TryAcquire(t.Context(), name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			release(t, h)
		}
		time.Sleep(time.Minute)
	})
}

func TestWhatCannotBeHeldTogetherIsRefusedBeforeAnyIsTaken(t *testing.T) {
	for _, names := range [][]string{nil, {"a/b", "a/c", "a/b"}, {"a/b", "no namespace"}} {
		s := newStub()
		err := (&lock.Client{Service: s}).DoAll(t.Context(), names, func(context.Context, map[string]fence.Token) error {
			t.Error("worked")
			return nil
		})
		if !errors.Is(err, lease.ErrInvalid) || len(s.of("acquire")) != 0 {
			t.Errorf("%q: got %v after %d requests, want it invalid", names, err, len(s.of("acquire")))
		}
	}
}

func breakLock(t *testing.T, s lease.Service, name lease.Name) {
	t.Helper()
	state, err := s.Get(t.Context(), name)
	if err == nil {
		_, err = s.Break(t.Context(), lease.BreakRequest{Name: name, Token: state.Token, Reason: "test"})
	}
	if err != nil {
		t.Error(err)
	}
}

func TestTheWorkEndsWhenAnyOfTheLocksIsLost(t *testing.T) {
	names := []string{"a/1", "a/2", "a/3"}
	for _, name := range names {
		synctest.Test(t, func(t *testing.T) {
			m := new(memlease.Store)
			c := &lock.Client{Service: m}
			broken, _ := lease.ParseName(name)
			err := c.DoAll(t.Context(), names, func(ctx context.Context, _ map[string]fence.Token) error {
				breakLock(t, m, broken)
				select {
				case <-ctx.Done():
				case <-time.After(ttl):
					t.Errorf("%s is lost, and the work goes on", name)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("ended with %v, want ErrLost", cause)
				}
				return nil
			})
			if !errors.Is(err, lock.ErrLost) {
				t.Errorf("%s: got %v, want ErrLost", name, err)
			}
		})
	}
}

func TestALockThatIsLostDuringTheWaitForTheNextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		c := &lock.Client{Service: m}
		second := acquire(t, c, "a/2")
		time.AfterFunc(time.Minute, func() { breakLock(t, m, lease.Name{Namespace: "a", Lock: "1"}) })
		started := time.Now()
		err := c.DoAll(t.Context(), []string{"a/1", "a/2"}, func(context.Context, map[string]fence.Token) error {
			t.Error("worked")
			return nil
		})
		if took := time.Since(started); !errors.Is(err, lock.ErrLost) || errors.Is(err, context.Canceled) || took > time.Minute+ttl {
			t.Errorf("got %v after %v, want ErrLost: the caller has cancelled nothing", err, took)
		}
		release(t, second)
		time.Sleep(time.Minute)
	})
}

func TestOppositeOrdersNeverWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memlease.Store)
		var names []string
		for i := range 5 {
			names = append(names, fmt.Sprintf("a/%d", i))
		}
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				c := &lock.Client{Service: m}
				for range 20 {
					some := slices.Clone(names)
					rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					err := c.DoAll(ctx, some[:2+rand.IntN(3)], func(context.Context, map[string]fence.Token) error {
						time.Sleep(100 * time.Millisecond)
						return nil
					})
					cancel()
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
	})
}
