package dynamolease_test

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"math"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
)

// A stubborn service repeats what failed without having been done, and what may
// have been done if that too is its task.
type stubborn struct {
	lease.Service
	unknown bool
}

func (s stubborn) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	return insist(ctx, s, q, s.Service.Acquire)
}

func (s stubborn) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	return insist(ctx, s, q, s.Service.Renew)
}

func (s stubborn) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	return insist(ctx, s, q, s.Service.Release)
}

func (s stubborn) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	return insist(ctx, s, q, s.Service.Break)
}

func (s stubborn) Get(ctx context.Context, n lease.Name) (lease.State, error) {
	return insist(ctx, s, n, s.Service.Get)
}

func insist[Q, A any](ctx context.Context, s stubborn, q Q, call func(context.Context, Q) (A, error)) (A, error) {
	for {
		a, err := call(ctx, q)
		again := errors.Is(err, lease.ErrThrottled) || errors.Is(err, lease.ErrUnavailable) || s.unknown && errors.Is(err, lease.ErrOutcomeUnknown)
		if !again || ctx.Err() != nil {
			return a, err
		}
	}
}

// promptFaults end at once, in an answer or without.
var promptFaults = []faultproxy.Chance{
	{Of: .04, Fault: faultproxy.Drop},
	{Of: .06, Fault: faultproxy.After(faultproxy.Drop)},
	{Of: .02, Fault: faultproxy.After(faultproxy.Reset)},
	{Of: .04, Fault: faultproxy.Truncate},
	{Of: .04, Fault: faultproxy.Corrupt},
	{Of: .05, Fault: faultproxy.Twice},
	{Of: .02, Fault: faultproxy.Refuse(500, "InternalServerError")},
	{Of: .03, Fault: faultproxy.After(faultproxy.Refuse(500, "InternalServerError"))},
	{Of: .02, Fault: faultproxy.After(faultproxy.Say(200, "text/html", "<html>"))},
	{Of: .04, Fault: faultproxy.Refuse(400, "ThrottlingException")},
	{Of: .02, Fault: faultproxy.Refuse(400, "ReplicatedWriteConflictException")},
}

// random has all requests meet prompt faults and more. The context that it
// returns ends when that many writes have been sent.
func (l line) random(seed uint64, writes int, more ...faultproxy.Chance) context.Context {
	ctx, cancel := context.WithTimeout(l.Context(), 20*time.Second)
	l.Cleanup(cancel)
	f := faultproxy.Random(seed, append(more, promptFaults...)...)
	l.proxy.Every(read, f)
	l.proxy.Every(write, func(x *faultproxy.Exchange) {
		if len(l.proxy.Seen(write)) >= writes {
			cancel()
		}
		f(x)
	})
	return ctx
}

// sparingAcquires spares them: an acquire that was refused and arrives again
// when the lock is free is granted, which is safe but no promise.
func sparingAcquires(f faultproxy.Fault) faultproxy.Fault {
	return func(x *faultproxy.Exchange) {
		if bytes.Contains(x.Body, []byte(`":rid"`)) {
			faultproxy.Pass(x)
			return
		}
		f(x)
	}
}

func TestThroughRandomFaultsPromisesAreKept(t *testing.T) {
	const (
		waits  = "it waits for seconds, and the hammer does so too"
		firsts = "it asks whether the change had been made before, which a repeat cannot tell"
	)
	left := map[string]string{
		"a free lock is granted for its TTL":                                            firsts,
		"a break ends the lease that it names and uses up a token":                      firsts,
		"breaking again finds the lock free":                                            firsts,
		"a lease that ran out goes to the next holder, who is told":                     waits,
		"the late release of a lease that ran out does not disturb the next holder":     waits,
		"renewing never revives a lease that ran out":                                   waits,
		"a lock delay keeps an abandoned lock from the next holder, not a released one": waits,
		"a minimum hold keeps a released lock from the next holder":                     waits,
		"a repeat still tells of the abandoned lease":                                   waits,
	}
	for _, p := range leasetest.Promises() {
		if left[p.Name] != "" {
			delete(left, p.Name)
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			l, late := newLine(t), new(faultproxy.Late)
			seed := fnv.New64()
			_, _ = seed.Write([]byte(p.Name)) // never fails
			l.random(seed.Sum64(), math.MaxInt,
				faultproxy.Chance{Of: .1, Fault: sparingAcquires(late.Copy)},
				faultproxy.Chance{Of: .1, Fault: late.Overtaken})
			p.Check(t, stubborn{l.store, true})
		})
	}
	for name, why := range left {
		t.Errorf("there is no promise %q to leave out because %s", name, why)
	}
}

func TestThroughRandomFaultsTheLockStaysSafe(t *testing.T) {
	t.Parallel()
	l, late := newLine(t, impatient), new(faultproxy.Late)
	l.store.Rules.Skew = time.Millisecond // all callers have one clock
	ctx := l.random(1, 400,
		faultproxy.Chance{Of: .01, Fault: late.Copy},
		faultproxy.Chance{Of: .01, Fault: late.Delay},
		faultproxy.Chance{Of: .05, Fault: late.Overtaken},
		faultproxy.Chance{Of: .02, Fault: faultproxy.After(faultproxy.Hang)})
	history := leasetest.Hammer{Service: l.store, Name: l.Name, Callers: 16, TTL: time.Second, Wait: 500 * time.Millisecond, Abandon: .05}.Run(ctx)
	if err := history.Check(); err != nil {
		t.Error(err)
	}
	count(t, history, 10)
}

func TestThroughRandomFaultsTheLockIsLinearizable(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	ctx := l.random(2, 300)
	history := leasetest.Hammer{Service: stubborn{l.store, false}, Name: l.Name, Callers: 5, TTL: time.Hour, Wait: 100 * time.Millisecond}.Run(ctx)
	if err := history.Check(); err != nil {
		t.Error(err)
	}
	if err := history.Linearizable(10 * time.Second); err != nil {
		t.Error(err)
	}
	count(t, history, 20)
}

// count checks that there was enough of a history to speak of.
func count(t *testing.T, history *leasetest.History, want int) {
	t.Helper()
	n := make(map[leasetest.Kind]int)
	for _, op := range history.Ops() {
		if op.Err == nil {
			n[op.Kind]++
		}
	}
	t.Logf("%d operations: succeeded: %v", len(history.Ops()), n)
	if n[leasetest.Acquire] < want || n[leasetest.Release] == 0 || n[leasetest.Renew] == 0 {
		t.Errorf("only %v operations succeeded, want %d grants", n, want)
	}
}
