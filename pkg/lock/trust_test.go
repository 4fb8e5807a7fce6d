package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// slowly takes its time on the way there and on the way back.
func slowly[Q, A any](there, back time.Duration, do func(context.Context, Q) (A, error)) func(context.Context, Q) (A, error) {
	return func(ctx context.Context, q Q) (A, error) {
		time.Sleep(there)
		a, err := do(ctx, q)
		time.Sleep(back)
		return a, err
	}
}

func TestTrustCountsFromBeforeTheRequest(t *testing.T) {
	for _, way := range []struct{ there, back time.Duration }{{0, 0}, {time.Second, 0}, {0, time.Second}, {time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.acquire = slowly(way.there, way.back, s.Service.Acquire)
			s.renew = slowly(way.there, way.back, s.Service.Renew)
			h := acquire(t, &lock.Client{Service: s}, "a/b")
			if got, want := h.Deadline(), s.of("acquire")[0].at.Add(ttl-margin); !got.Equal(want) {
				t.Errorf("%v: granted, trusted until %v, want %v", way, got, want)
			}
			for range 10 {
				time.Sleep(ttl / 2) // in the middle of no renewal
				synctest.Wait()
				confirmed := s.of("renew")
				last := confirmed[len(confirmed)-1].at
				if time.Since(last) < way.there+way.back {
					last = confirmed[len(confirmed)-2].at
				}
				if got, want := h.Deadline(), last.Add(ttl-margin); !got.Equal(want) {
					t.Errorf("%v: renewed, trusted until %v, want %v", way, got, want)
				}
			}
			release(t, h)
		})
	}
}

func TestTrustEndsAtItsDeadlineAndNotLater(t *testing.T) {
	for _, m := range []time.Duration{0, time.Millisecond, time.Second, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newStub()
			s.renew = silence
			h := acquire(t, &lock.Client{Service: s, Margin: m}, "a/b")
			want := time.Now().Add(ttl - m)
			if m == 0 {
				want = time.Now().Add(ttl - margin)
			}
			<-h.Context().Done()
			if !time.Now().Equal(want) || !h.Deadline().Equal(want) {
				t.Errorf("margin %v: ended at %v, deadline %v, want %v", m, time.Now(), h.Deadline(), want)
			}
			if err := h.Err(); !errors.Is(err, lock.ErrUnconfirmed) || errors.Is(err, lock.ErrLost) || !errors.Is(err, lock.ErrNotHeld) {
				t.Errorf("got %v, want ErrUnconfirmed", err)
			}
			release(t, h) // nobody else has the lock: it is still ours to free
		})
	}
}

// Such a service does not listen to contexts, and answers when it is too late.
func TestAConfirmationThatComesTooLateRevivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.renew = slowly(0, 2*ttl, s.Service.Renew)
		var seen events
		h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
		want := h.Deadline()
		<-h.Lost()
		if !time.Now().Equal(want) {
			t.Errorf("lost at %v, want %v", time.Now(), want)
		}
		time.Sleep(5 * ttl)
		if err := h.Err(); !errors.Is(err, lock.ErrUnconfirmed) {
			t.Errorf("got %v, want ErrUnconfirmed", err)
		}
		if seen.count(lock.Renewed) != 0 || seen.count(lock.Lost) != 1 || len(s.of("renew")) != 1 {
			t.Errorf("told of %v after %d renewals, want one loss and no renewal", seen.kinds(), len(s.of("renew")))
		}
	})
}

func TestASlowAnswerIsNoReasonToTrustALeaseThatHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = inTurn(slowly(0, 4900*time.Millisecond, s.Service.Acquire), s.Service.Acquire)
		h := acquire(t, &lock.Client{Service: s, TTL: 2 * time.Second}, "a/b")
		if left := time.Until(h.Deadline()); left <= 0 || h.Err() != nil {
			t.Errorf("got %v of trust, %v, want a lease to work with", left, h.Err())
		}
		if ids := requestIDs(s); len(ids) != 2 {
			t.Errorf("asked with %d ids, want a new one after the grant had ended", len(ids))
		}
		release(t, h)
	})
}

func TestTheWallClockEndsTrustAfterASuspend(t *testing.T) {
	for phase := time.Duration(0); phase < ttl/3; phase += 130 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			var asleep atomic.Int64
			lock.JumpWallClock(t, func() time.Duration { return time.Duration(asleep.Load()) })
			s := newStub()
			var seen events
			h := acquire(t, &lock.Client{Service: s, Observe: seen.observe}, "a/b")
			time.Sleep(time.Minute + phase)
			synctest.Wait()
			renewals := len(s.of("renew"))
			asleep.Store(int64(3 * ttl))
			woke := time.Now()
			<-h.Context().Done() // nobody asks for Err
			if took := time.Since(woke); took > time.Second {
				t.Errorf("the work was stopped %v after waking up, want 1 s at most", took)
			}
			if err := h.Err(); !errors.Is(err, lock.ErrLost) {
				t.Errorf("got %v, want ErrLost: the lease has run out", err)
			}
			time.Sleep(3 * ttl)
			if seen.count(lock.Lost) != 1 || len(s.of("renew")) != renewals {
				t.Errorf("told of %v, %d renewals after waking up, want one loss and no renewal", seen.kinds(), len(s.of("renew"))-renewals)
			}
		})
	}
}

// The renewal may have been carried out before, and the lease live on.
func TestAfterASuspendWithARenewalUnderWayNothingIsCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		lock.JumpWallClock(t, func() time.Duration { return time.Duration(asleep.Load()) })
		s := newStub()
		s.renew = silence
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		time.Sleep(ttl / 3)
		asleep.Store(int64(ttl))
		if err := h.Err(); !errors.Is(err, lock.ErrUnconfirmed) || errors.Is(err, lock.ErrLost) {
			t.Errorf("got %v, want ErrUnconfirmed", err)
		}
		release(t, h)
	})
}

// It was sent in time, but for a moment nobody was trusted, and whoever looked
// was told so.
func TestTrustThatHasEndedDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		lock.JumpWallClock(t, func() time.Duration { return time.Duration(asleep.Load()) })
		s := newStub()
		began := time.Now()
		late := began.Add(ttl - margin - time.Second)
		s.renew = during(began, late, failing[lease.RenewRequest, lease.Lease](lease.ErrUnavailable), func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			l, err := s.Service.Renew(ctx, q)
			asleep.Store(int64(time.Second))
			return l, err
		})
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		<-h.Lost()
		if now := time.Now(); now.Before(late) || !now.Before(began.Add(ttl-margin)) || !errors.Is(h.Err(), lock.ErrUnconfirmed) {
			t.Errorf("lost at %v, %v, want when the late answer came", now, h.Err())
		}
		release(t, h)
	})
}

func TestErrKnowsOfASuspendAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		lock.JumpWallClock(t, func() time.Duration { return time.Duration(asleep.Load()) })
		h := acquire(t, &lock.Client{Service: new(memlease.Store)}, "a/b")
		asleep.Store(int64(ttl - margin - 1))
		if err := h.Err(); err != nil {
			t.Errorf("got %v, want it held until its deadline", err)
		}
		asleep.Store(int64(ttl - margin))
		if err := h.Err(); !errors.Is(err, lock.ErrUnconfirmed) || h.Context().Err() == nil {
			t.Errorf("got %v, want ErrUnconfirmed before the lease has run out", err)
		}
		release(t, h)
	})
}

func TestALossComesBeforeTheReleaseThatDiscoversIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		lock.JumpWallClock(t, func() time.Duration { return time.Duration(asleep.Load()) })
		var seen events
		h := acquire(t, &lock.Client{Service: new(memlease.Store), Observe: seen.observe}, "a/b")
		asleep.Store(int64(ttl))
		release(t, h) // nobody has taken it: it is free now
		if err := h.Err(); !errors.Is(err, lock.ErrLost) || seen.count(lock.Lost) != 1 {
			t.Errorf("got %v, told of %v, want ErrLost", err, seen.kinds())
		}
	})
}

func TestASuspendDuringARequestCountsAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		lock.JumpWallClock(t, func() time.Duration { return time.Duration(asleep.Load()) })
		s := newStub()
		s.acquire = inTurn(func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			l, err := s.Service.Acquire(ctx, q)
			asleep.Store(int64(time.Hour))
			return l, err
		}, func(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
			asleep.Store(0) // this request was sent after it
			return s.Service.Acquire(ctx, q)
		})
		s.renew = func(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
			l, err := s.Service.Renew(ctx, q)
			asleep.Store(int64(time.Hour))
			return l, err
		}
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		if len(s.of("acquire")) != 2 || h.Err() != nil {
			t.Errorf("asked %d times, %v, want a lease that is known to live", len(s.of("acquire")), h.Err())
		}
		<-h.Lost()
		if len(s.of("renew")) != 1 || h.Deadline().After(time.Now().Add(ttl)) {
			t.Errorf("lost after %d renewals, want by the first", len(s.of("renew")))
		}
	})
}

func TestAWallClockThatIsSetBackExtendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		lock.JumpWallClock(t, func() time.Duration { return -time.Duration(back.Load()) })
		s := newStub()
		s.renew = silence
		h := acquire(t, &lock.Client{Service: s}, "a/b")
		want := h.Deadline()
		back.Store(int64(time.Hour))
		<-h.Lost()
		if !time.Now().Equal(want) {
			t.Errorf("lost at %v, want %v", time.Now(), want)
		}
	})
}
