package protocol_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

var (
	errHeld      = &lease.HeldError{Holder: "worker-1", Token: 1, Remaining: time.Hour}
	errThrottled = &lease.RetryError{Err: lease.ErrThrottled, After: time.Second}
)

// A door is a lock that answers what it is told to, and counts.
type door struct {
	acquires, looks int
	acquire, look   func() error
}

// await waits at d and returns how long that took.
func (d *door) await(ctx context.Context, wait time.Duration) (lease.Lease, time.Duration, error) {
	started := time.Now()
	l, err := protocol.Await(ctx, wait, func(context.Context) (lease.Lease, error) {
		d.acquires++
		if err := d.acquire(); err != nil {
			return lease.Lease{}, err
		}
		return lease.Lease{Token: 7}, nil
	}, func(context.Context) error {
		d.looks++
		return d.look()
	})
	return l, time.Since(started), err
}

func always(err error) func() error { return func() error { return err } }

// until answers err for a while, and then nil.
func until(d time.Duration, err error) func() error {
	end := time.Now().Add(d)
	return func() error {
		if time.Now().Before(end) {
			return err
		}
		return nil
	}
}

func TestAwait(t *testing.T) {
	for name, f := range map[string]func(*testing.T){
		"a free lock is not waited for": func(t *testing.T) {
			d := door{acquire: always(nil), look: always(nil)}
			if l, took, err := d.await(t.Context(), time.Minute); l.Token != 7 || took != 0 || err != nil || d.acquires != 1 || d.looks != 0 {
				t.Errorf("got %+v after %v, error %v, %+v", l, took, err, d)
			}
		},
		"without a wait a held lock is refused at once": func(t *testing.T) {
			d := door{acquire: always(errHeld), look: always(nil)}
			if _, took, err := d.await(t.Context(), 0); took != 0 || err != errHeld || d.acquires != 1 || d.looks != 0 {
				t.Errorf("got error %v after %v, %+v", err, took, d)
			}
		},
		"a held lock is acquired once, and then only looked at": func(t *testing.T) {
			d := door{acquire: always(errHeld), look: always(errHeld)}
			_, took, err := d.await(t.Context(), 20*time.Second)
			if took != 20*time.Second || err != errHeld || d.acquires != 1 {
				t.Errorf("got error %v after %v, %+v", err, took, d)
			}
			// Half to one and a half intervals of 200 ms.
			if d.looks < 20*1000/300 || d.looks > 20*1000/100 {
				t.Errorf("looked %d times in 20s", d.looks)
			}
		},
		"a wait leaves its caller time for the answer": func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			d := door{acquire: always(errHeld), look: always(errHeld)}
			if _, took, err := d.await(ctx, 20*time.Second); took != 2500*time.Millisecond || err != errHeld {
				t.Errorf("got error %v after %v, want ErrHeld after 2.5s", err, took)
			}
		},
		"a deadline soon after the wait shortens it": func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
			defer cancel()
			d := door{acquire: always(errHeld), look: always(errHeld)}
			if _, took, err := d.await(ctx, time.Second); took != 700*time.Millisecond || err != errHeld {
				t.Errorf("got error %v after %v, want ErrHeld after 0.7s", err, took)
			}
		},
		"a caller without time to wait is still served once": func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
			defer cancel()
			d := door{acquire: always(errHeld), look: always(errHeld)}
			if _, took, err := d.await(ctx, 20*time.Second); took != 0 || err != errHeld || d.acquires != 1 || d.looks != 0 {
				t.Errorf("got error %v after %v, %+v", err, took, d)
			}
		},
		"a deadline long after the wait does not matter": func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			d := door{acquire: always(errHeld), look: always(errHeld)}
			if _, took, err := d.await(ctx, time.Second); took != time.Second || err != errHeld {
				t.Errorf("got error %v after %v", err, took)
			}
		},
		"cancelling ends the wait at that moment": func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(1234*time.Millisecond, cancel)
			d := door{acquire: always(errHeld), look: always(errHeld)}
			if _, took, err := d.await(ctx, 20*time.Second); took != 1234*time.Millisecond || !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v after %v", err, took)
			}
		},
		"the reason of the cancellation is the error": func(t *testing.T) {
			over := errors.New("over")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(over) })
			d := door{acquire: always(errHeld), look: always(errHeld)}
			if _, _, err := d.await(ctx, 20*time.Second); !errors.Is(err, over) {
				t.Errorf("got error %v", err)
			}
		},
		"a lock that is released is acquired": func(t *testing.T) {
			released := 5 * time.Second
			d := door{acquire: until(released, errHeld), look: until(released, errHeld)}
			l, took, err := d.await(t.Context(), 20*time.Second)
			if l.Token != 7 || err != nil || d.acquires != 2 {
				t.Errorf("got %+v, error %v, %+v", l, err, d)
			}
			if took < released || took > released+300*time.Millisecond {
				t.Errorf("took %v, want one interval more than %v", took, released)
			}
		},
		"a lock that someone else was quicker to acquire is waited for again": func(t *testing.T) {
			d := door{acquire: until(3*time.Second, errHeld), look: always(nil)}
			if l, took, err := d.await(t.Context(), 20*time.Second); l.Token != 7 || err != nil || took > 3300*time.Millisecond || d.acquires < 10 {
				t.Errorf("got %+v after %v, error %v, %+v", l, took, err, d)
			}
		},
		"a lock that is released when the wait ends is acquired": func(t *testing.T) {
			d := door{acquire: until(time.Second, errHeld), look: until(time.Second, errHeld)}
			if l, took, err := d.await(t.Context(), time.Second); l.Token != 7 || err != nil || took != time.Second {
				t.Errorf("got %+v after %v, error %v", l, took, err)
			}
		},
		"a lease that is about to run out is looked at when it has": func(t *testing.T) {
			d := door{acquire: until(30*time.Millisecond, &lease.HeldError{Remaining: 30 * time.Millisecond}), look: always(nil)}
			if _, took, err := d.await(t.Context(), 20*time.Second); err != nil || took > 50*time.Millisecond {
				t.Errorf("took %v, error %v, want 30ms and a little", took, err)
			}
		},
		"a store that asks for time gets it": func(t *testing.T) {
			d := door{acquire: always(errThrottled), look: always(nil)}
			if _, took, err := d.await(t.Context(), 3500*time.Millisecond); took < 3*time.Second || err != errThrottled || d.acquires != 4 || d.looks != 3 {
				t.Errorf("got error %v after %v, want one try a second: %+v", err, took, d)
			}
		},
		"a look that is asked for time waits too": func(t *testing.T) {
			d := door{acquire: always(errHeld), look: always(errThrottled)}
			if _, _, err := d.await(t.Context(), 3500*time.Millisecond); err != errThrottled || d.acquires != 1 || d.looks > 5 {
				t.Errorf("got error %v, %+v", err, d)
			}
		},
		"a store that asks for too much time is asked again": func(t *testing.T) {
			d := door{acquire: until(ms.Sub(0), &lease.RetryError{Err: lease.ErrThrottled, After: time.Hour}), look: always(nil)}
			if _, took, err := d.await(t.Context(), 20*time.Second); err != nil || took < time.Second || took > 6*time.Second {
				t.Errorf("took %v, error %v", took, err)
			}
		},
		"a herd whose lease runs out, or whose store is throttled, does not come back at once": func(t *testing.T) {
			const waiters = 100
			for _, err := range []error{&lease.HeldError{Remaining: 30 * time.Millisecond}, errThrottled} {
				took := make(map[time.Duration]bool)
				for range waiters {
					d := door{acquire: until(ms.Sub(0), err), look: always(nil)}
					_, after, err := d.await(t.Context(), 20*time.Second)
					if err != nil {
						t.Fatal(err)
					}
					took[after.Round(time.Microsecond)] = true
				}
				if len(took) < waiters*9/10 {
					t.Errorf("after %v, %d waiters looked at %d different times", err, waiters, len(took))
				}
			}
		},
		"waiters spread out": func(t *testing.T) {
			took := make(map[time.Duration]bool)
			for range 20 {
				d := door{acquire: until(ms.Sub(0), errHeld), look: always(nil)}
				_, after, err := d.await(t.Context(), 20*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				took[after] = true
			}
			if len(took) < 15 {
				t.Errorf("20 waiters looked at %d different times", len(took))
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
}

func TestAwaitGoesOnOnlyWhereWaitingHelps(t *testing.T) {
	for _, c := range []struct {
		err  error
		wait bool
	}{
		{errHeld, true},
		{errThrottled, true},
		{&lease.RetryError{Err: lease.ErrUnavailable, After: time.Second}, true},
		{&lease.RetryError{Err: lease.ErrQuarantine, After: time.Hour}, false},
		{&lease.RetryError{Err: lease.ErrClockSkew, After: time.Second}, false},
		{&lease.RetryError{Err: lease.ErrOutcomeUnknown, After: time.Second}, false},
		{lease.ErrRequestSpent, false},
		{lease.ErrRequestConflict, false},
		{lease.ErrMisconfigured, false},
		{errors.New("anything else"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			const after = 2 * time.Second
			acquire := door{acquire: until(after, c.err), look: until(after, c.err)}
			l, took, err := acquire.await(t.Context(), 20*time.Second)
			if waited := err == nil && l.Token == 7 && took >= after; waited != c.wait || !c.wait && (err != c.err || took != 0 || acquire.looks != 0) {
				t.Errorf("acquire fails with %v: got %v after %v, %+v", c.err, err, took, acquire)
			}
			look := door{acquire: until(after, errHeld), look: until(after, c.err)}
			_, took, err = look.await(t.Context(), 20*time.Second)
			if waited := err == nil && took >= after; waited != c.wait || !c.wait && (err != c.err || look.looks != 1) {
				t.Errorf("look fails with %v: got %v after %v, %+v", c.err, err, took, look)
			}
		})
	}
}
