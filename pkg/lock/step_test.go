package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// The clock of a host is set, by a second or an hour: all its locks are still
// held, and the service says so.
func TestAClockThatStepsForwardLosesNoLock(t *testing.T) {
	for _, step := range []time.Duration{time.Second, ttl, time.Hour} {
		for phase := time.Duration(0); phase < ttl; phase += 970 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				var gained atomic.Int64
				lock.StepWallClock(t, func() time.Duration { return time.Duration(gained.Load()) })
				var seen events
				c := &lock.Client{Service: newStub(), Observe: seen.observe}
				var held []*lock.Held
				for i := range 5 {
					held = append(held, acquire(t, c, fmt.Sprint("a/", i)))
				}
				time.Sleep(time.Minute + phase)
				gained.Store(int64(step))
				if err := held[0].Err(); err != nil { // asks at once
					t.Errorf("step %v: %v", step, err)
				}
				time.Sleep(time.Minute)
				for _, h := range held {
					if err := h.Err(); err != nil || h.Context().Err() != nil {
						t.Errorf("step %v: %v", step, err)
					}
					release(t, h)
				}
				if seen.count(lock.Lost) != 0 {
					t.Errorf("step %v: told of %v", step, seen.kinds())
				}
			})
		}
	}
}

// A virtual machine that was stopped does not know it. The time has passed all the
// same, and the service knows.
func TestAClockThatStepsBecauseTimeHasPassedEndsTheLock(t *testing.T) {
	for name, renew := range map[string]func(context.Context, lease.RenewRequest) (lease.Lease, error){
		"refused":    failing[lease.RenewRequest, lease.Lease](lease.ErrExpired),
		"no answer":  silence[lease.RenewRequest, lease.Lease],
		"no service": failing[lease.RenewRequest, lease.Lease](lease.ErrUnavailable),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gained atomic.Int64
				lock.StepWallClock(t, func() time.Duration { return time.Duration(gained.Load()) })
				s := newStub()
				stepped := time.Now().Add(time.Minute)
				s.renew = during(stepped, stepped.Add(time.Hour), renew, s.Service.Renew)
				h := acquire(t, &lock.Client{Service: s}, "a/b")
				other := acquire(t, &lock.Client{Service: s}, "a/c")
				time.Sleep(time.Minute)
				gained.Store(int64(time.Hour))
				if err := other.Err(); !errors.Is(err, lock.ErrNotHeld) || errors.Is(err, lock.ErrLost) != (name == "refused") {
					t.Errorf("got %v, want certainty only from the service", err)
				}
				if took := time.Since(stepped); took > time.Second {
					t.Errorf("Err took %v", took)
				}
				<-h.Context().Done()
				if took := time.Since(stepped); took > 2*time.Second {
					t.Errorf("the work ended after %v, want a second to notice and one to decide", took)
				}
				if err := h.Err(); !errors.Is(err, lock.ErrNotHeld) || errors.Is(err, lock.ErrLost) != (name == "refused") {
					t.Errorf("got %v, want certainty only from the service", err)
				}
			})
		})
	}
}

// A renewal that was sent before the step proves nothing of the time after it.
func TestAStepDuringARenewalIsDecidedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gained atomic.Int64
		lock.StepWallClock(t, func() time.Duration { return time.Duration(gained.Load()) })
		s := newStub()
		s.renew = inTurn(func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			time.Sleep(100 * time.Millisecond)
			gained.Store(int64(time.Hour))
			return s.Service.Renew(ctx, q)
		}, s.Service.Renew)
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		time.Sleep(ttl/3 + 200*time.Millisecond)
		if err := h.Err(); err != nil || len(s.of("renew")) != 2 {
			t.Errorf("got %v after %d renewals, want it held after two", err, len(s.of("renew")))
		}
		release(t, h)
	})
}
