package dynamolease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
)

func TestAFaultyTableThatThrottlesDoesNotCostTheHolderItsLock(t *testing.T) {
	t.Parallel()
	const ttl, interval, renewals = 3 * time.Second, 500 * time.Millisecond, 20
	l := newLine(t)
	now := time.Now() // moves from renewal to renewal: pauses between attempts do not count
	clock := func() time.Time { return now }
	l.store.Now, l.direct.Now = clock, clock
	q := l.request()
	q.TTL = ttl
	held := must[lease.Lease](t)(l.store.Acquire(t.Context(), q))
	l.proxy.Every(write, faultproxy.Random(50, faultproxy.Chance{Of: .6, Fault: faultproxy.Refuse(400, "ThrottlingException")}))
	throttled := 0
	for range renewals {
		now = now.Add(interval)
		renewed, err := l.store.Renew(t.Context(), renewalOf(held, ttl))
		if err == nil {
			held = renewed
		} else {
			l.means("renew", err, lease.ErrThrottled)
			throttled++
		}
		l.heldBy(held)
		if _, err := l.direct.Acquire(t.Context(), l.request()); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("another caller got error %v, want ErrHeld", err)
		}
	}
	if throttled < renewals/10 || throttled > renewals/2 {
		t.Errorf("%d of %d renewals were throttled, too few or too many for a test", throttled, renewals)
	}
}
