package dynamolease_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// A watcher is an HTTP client that shows each request before and after it is
// sent. An error from either is what the SDK sees.
type watcher struct {
	before, after func(operation string) error
}

func (w watcher) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if w.before != nil {
		if err := w.before(operation); err != nil {
			return nil, err
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err == nil && w.after != nil {
		if err = w.after(operation); err != nil {
			resp.Body.Close()
		}
	}
	return resp, err
}

// sweeper returns one that looks at few items at a time, as fast as it can.
func (x table) sweeper(w watcher) *dynamolease.Sweeper {
	o := localtest.DynamoDBForTest(x.TB).Options()
	o.HTTPClient = w
	return &dynamolease.Sweeper{Client: dynamolease.NewClientFrom(o), Table: x.name, Rate: 10_000, Page: 10}
}

// sweep sweeps on a host whose clock reads now.
func (x table) sweep(s *dynamolease.Sweeper, now protocol.Instant) dynamolease.Swept {
	x.Helper()
	s.Now = now.Time
	swept, err := s.Sweep(x.Context(), now.Time())
	if err != nil {
		x.Fatal(err)
	}
	return swept
}

// use grants a lock for a minute and gives it up.
func (x table) use(s *dynamolease.Store, lock string) fence.Token {
	x.Helper()
	n := lease.Name{Namespace: "a", Lock: lock}
	l, err := s.Acquire(x.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute})
	if err == nil {
		_, err = s.Release(x.Context(), lease.ReleaseRequest{Name: n, LeaseID: l.ID, Token: l.Token})
	}
	if err != nil {
		x.Fatal(err)
	}
	return l.Token
}

func TestASweepRetiresIdleLocksAndNothingElse(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	retired := noon + minute + 7*day // the lease could have lived until then, and its memory
	for i := range 25 {
		x.use(s, fmt.Sprint("idle ", i))
	}
	now += second
	x.use(s, "used a second later")
	foreign := lease.Name{Namespace: "not", Lock: "a lock"}
	x.put(foreign, map[string]types.AttributeValue{"gc": &types.AttributeValueMemberN{Value: "1"}})

	w := x.sweeper(watcher{})
	if got := x.sweep(w, retired); got != (dynamolease.Swept{Seen: 27, Done: true, Began: retired.Time()}) {
		t.Errorf("at the second of its retirement: %+v", got)
	}
	if got := x.sweep(w, retired+second); got != (dynamolease.Swept{Seen: 27, Retired: 25, Done: true, Began: (retired + second).Time()}) {
		t.Errorf("a second later: %+v", got)
	}
	for _, n := range []lease.Name{{Namespace: "a", Lock: "used a second later"}, foreign} {
		if len(x.item(n)) == 0 {
			t.Errorf("%v is gone", n)
		}
	}
}

// A withdrawal on a lock of which nothing is recorded makes an item without a
// token.
func TestASweepRetiresWhatHasOnlyMarkersUnlessItIsGranted(t *testing.T) {
	for _, granted := range []bool{false, true} {
		x := newTable(t)
		now := noon
		s := x.store(&now, protocol.Rules{Retention: 24 * time.Hour})
		n := lease.Name{Namespace: "a", Lock: "b"}
		if _, err := s.Release(t.Context(), lease.ReleaseRequest{Name: n, RequestID: lease.NewID()}); err != nil {
			t.Fatal(err)
		}
		retired := noon + day + minute + second // the marker lasts until then, and a day is the retention
		if got := x.sweep(x.sweeper(watcher{}), retired); got.Retired != 0 {
			t.Errorf("at the second of its retirement: %+v", got)
		}
		use := watcher{before: func(operation string) error {
			if operation == "DeleteItem" && granted {
				now = noon + minute // by the time of the sweep it is to be retired again
				x.use(s, "b")
			}
			return nil
		}}
		want := dynamolease.Swept{Seen: 1, Retired: 1, Done: true, Began: (retired + 2*day).Time()}
		if granted {
			want.Retired, want.Kept = 0, 1
		}
		if got := x.sweep(x.sweeper(use), retired+2*day); got != want {
			t.Errorf("granted: %t: got %+v, want %+v", granted, got, want)
		}
		if kept := len(x.item(n)) > 0; kept != granted {
			t.Errorf("granted: %t: the item is kept: %t", granted, kept)
		}
	}
}

func TestALockThatIsUsedBetweenTheLookAndTheDeleteSurvivesASweep(t *testing.T) {
	rules := protocol.Rules{Retention: 24 * time.Hour}
	number := func(n int64) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }
	extended := lease.Name{Namespace: "a", Lock: "extended"}
	for name, use := range map[string]func(table, *dynamolease.Store){
		// By the time of the sweep it is to be retired again, and only its token has changed.
		"granted": func(x table, s *dynamolease.Store) { x.use(s, "granted") },
		// No transition does this. The condition has it, should there be one.
		"extended": func(x table, _ *dynamolease.Store) {
			x.put(extended, map[string]types.AttributeValue{"tok": number(7), "gc": number(1 << 40)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTable(t)
			now := noon
			s := x.store(&now, rules)
			if name == "extended" {
				x.put(extended, map[string]types.AttributeValue{"tok": number(7), "gc": number(1)})
			} else {
				x.use(s, name)
			}
			now += 8 * day
			w := x.sweeper(watcher{before: func(operation string) error {
				if operation == "DeleteItem" {
					use(x, s)
				}
				return nil
			}})
			if got := x.sweep(w, now+2*day); got.Retired != 0 || got.Kept != 1 {
				t.Errorf("got %+v", got)
			}
			if len(x.item(lease.Name{Namespace: "a", Lock: name})) == 0 {
				t.Error("it is gone")
			}
		})
	}
}

func TestASweepGoesOnWhereTheLastOneStopped(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	for i := range 45 {
		x.use(s, fmt.Sprint(i))
	}
	broken := errors.New("network")
	scans := 0
	w := x.sweeper(watcher{before: func(operation string) error {
		if operation == "Scan" {
			if scans++; scans > 3 {
				return broken
			}
		}
		return nil
	}})
	// Nothing is retired yet, so that only the place says what was looked at.
	w.Now = now.Time
	began := now.Time()
	first, err := w.Sweep(t.Context(), began)
	if !errors.Is(err, broken) || first.Seen != 30 || first.Done || !first.Began.Equal(began) {
		t.Fatalf("got %+v, %v", first, err)
	}
	scans = 3
	now += hour
	if stuck, err := w.Sweep(t.Context(), began); !errors.Is(err, broken) || stuck.Seen != 0 || !stuck.Began.Equal(began) {
		t.Errorf("a sweep that does not come on: %+v, %v, want the pass of %v", stuck, err, began)
	}
	scans = -100
	second := x.sweep(w, now)
	if got := first.Seen + second.Seen; got < 45 || got > 46 || !second.Done || !second.Began.Equal(began) { // 46 with the place, wherever it lies
		t.Errorf("two sweeps have looked at %d items, and then %+v", first.Seen, second)
	}
	now += hour
	if third := x.sweep(w, now); third.Seen != 46 || !third.Done || !third.Began.Equal(now.Time()) {
		t.Errorf("after the end: %+v", third)
	}
}

func TestASweepStopsBeforeItsDeadlineAndRemembersItsPlace(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	for i := range 30 {
		x.use(s, fmt.Sprint(i))
	}
	w := x.sweeper(watcher{})
	w.Rate, w.Now = 10, now.Time
	ctx, cancel := context.WithTimeout(t.Context(), 5250*time.Millisecond)
	defer cancel()
	started := time.Now()
	first, err := w.Sweep(ctx, now.Time())
	if err != nil || first.Done || first.Seen == 0 || time.Since(started) > 3*time.Second {
		t.Fatalf("after %v: %+v, %v", time.Since(started), first, err)
	}
	w.Rate = 10_000
	if second := x.sweep(w, now); second.Seen > 31-first.Seen || !second.Done {
		t.Errorf("after %+v: %+v", first, second)
	}
}

func TestASweepCountsADeleteWhoseAnswerWasLost(t *testing.T) {
	x := newTable(t)
	now := noon
	x.use(x.store(&now, protocol.Rules{}), "lock")
	deletes := 0
	w := x.sweeper(watcher{after: func(operation string) error {
		if operation == "DeleteItem" {
			if deletes++; deletes == 1 {
				return errors.New("network")
			}
		}
		return nil
	}})
	if got := x.sweep(w, now+8*day); got.Retired != 1 || got.Kept != 0 || deletes != 2 {
		t.Errorf("got %+v after %d deletes", got, deletes)
	}
}

// Callers come back to locks that are being retired. Every grant must have a
// token of its own, and a larger one than what the caller had before.
func TestASweepNeverLetsATokenComeAgain(t *testing.T) {
	x := newTable(t)
	const locks, callers, rounds = 8, 4, 12
	start := protocol.At(time.Now())
	before := make([]fence.Token, locks)
	then := start - 8*day
	for i := range locks {
		before[i] = x.use(x.store(&then, protocol.Rules{}), fmt.Sprint(i))
	}
	var (
		granted [locks]sync.Map
		working sync.WaitGroup
		retired int
	)
	for range callers {
		working.Go(func() {
			for range rounds {
				for i := range locks {
					n := lease.Name{Namespace: "a", Lock: fmt.Sprint(i)}
					l, err := x.store(nil, protocol.Rules{}).Acquire(x.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute, Wait: 10 * time.Second})
					if err != nil {
						t.Error(err)
						return
					}
					if _, again := granted[i].LoadOrStore(l.Token, true); again || l.Token <= before[i] {
						t.Errorf("token %d of lock %d was granted before", l.Token, i)
					}
					if _, err := x.store(nil, protocol.Rules{}).Release(x.Context(), lease.ReleaseRequest{Name: n, LeaseID: l.ID, Token: l.Token}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	for sweeping := true; sweeping; {
		select {
		case <-done:
			sweeping = false
		default:
			// Not by the real time: almost as far ahead as the protocol allows.
			retired += x.sweep(x.sweeper(watcher{}), protocol.At(time.Now())+7*day-hour).Retired
		}
	}
	t.Logf("%d items were retired", retired)
}
