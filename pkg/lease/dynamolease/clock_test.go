package dynamolease_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// A liar is an HTTP client whose answers tell another time than they should. The
// clock of its host reads what the test says.
type liar struct {
	dynamodb.HTTPClient
	now      time.Time                                 // of the host; an answer takes no time
	ahead    time.Duration                             // of the host's clock is that of the answers
	date     func(request int, header string) string   // may change what is told
	answered func(request int, a *http.Response) error // an error loses the answer
	requests int
}

func (l *liar) Do(r *http.Request) (*http.Response, error) {
	a, err := l.HTTPClient.Do(r)
	l.requests++
	if err != nil {
		return nil, err
	}
	header := l.now.Add(l.ahead).UTC().Format(http.TimeFormat)
	if l.date != nil {
		header = l.date(l.requests, header)
	}
	if a.Header.Set("Date", header); header == "" {
		a.Header.Del("Date")
	}
	if l.answered != nil {
		if err := l.answered(l.requests, a); err != nil {
			a.Body.Close()
			return nil, err
		}
	}
	return a, nil
}

// A host is a store that has made no request yet, behind a gateway or not.
type host struct {
	*testing.T
	*dynamolease.Store
	*liar
	gateway bool
}

// eachHost runs a test behind a gateway, as in production, and without one.
func eachHost(t *testing.T, test func(h host)) {
	for name, gateway := range map[string]bool{"behind a gateway": true, "without a gateway": false} {
		t.Run(name, func(t *testing.T) {
			x := newTable(t)
			l := &liar{now: time.Now(), HTTPClient: x.sent}
			o := localtest.DynamoDBForTest(t).Options()
			o.HTTPClient = l
			s := &dynamolease.Store{Client: dynamolease.NewClientFrom(o), Table: x.name, Now: func() time.Time { return l.now }}
			test(host{t, s, l, gateway})
		})
	}
}

// call is one that was received just now.
func (h host) call() context.Context {
	if !h.gateway {
		return h.T.Context()
	}
	return lease.WithCall(h.T.Context(), &lease.Call{Received: h.now})
}

var clocked = lease.AcquireRequest{Name: lease.Name{Namespace: "clock", Lock: "a"}, TTL: time.Minute}

func (h host) acquire(lock string) (lease.Lease, error) {
	q := clocked
	q.Name.Lock = lock
	return h.Acquire(h.call(), q)
}

// granted acquires a lock and returns what that costs.
func (h host) granted(lock string) (requests int) {
	h.Helper()
	before := h.requests
	if _, err := h.acquire(lock); err != nil {
		h.Errorf("%s: %v", lock, err)
	}
	return h.requests - before
}

// held acquires a lock on a clock that is right, so that nothing is to be asked.
func (h host) held() lease.Lease {
	h.Helper()
	return must[lease.Lease](h.T)(h.acquire(clocked.Name.Lock))
}

func (h host) state() lease.State {
	h.Helper()
	return must[lease.State](h.T)(h.Get(h.T.Context(), clocked.Name))
}

func TestTheFirstGrantComparesTheClocksUnlessAGatewayHas(t *testing.T) {
	eachHost(t, func(h host) {
		first, next := h.granted("a"), h.granted("b")
		if want := 2; !h.gateway && first != want || h.gateway && first != 1 || next != 1 {
			t.Errorf("gateway %t: the first grant took %d requests, and the next one %d", h.gateway, first, next)
		}
	})
}

func TestAHostWhoseClockIsOffGrantsNothing(t *testing.T) {
	eachHost(t, func(h host) {
		for _, h.ahead = range []time.Duration{4 * time.Second, -4 * time.Second, time.Hour} {
			for range 3 {
				if got, err := h.acquire("a"); !errors.Is(err, lease.ErrClockSkew) {
					t.Errorf("%v: got %v, %v, want ErrClockSkew", h.ahead, got, err)
				}
			}
			if s := h.state(); s.Held {
				t.Errorf("%v: the lock is held: %v", h.ahead, s)
			}
		}
	})
}

func TestAClockWithinTheSkewAndTheSecondOfTheHeaderGrants(t *testing.T) {
	eachHost(t, func(h host) {
		for _, h.ahead = range []time.Duration{900 * time.Millisecond, -900 * time.Millisecond} {
			h.granted(h.ahead.String())
		}
	})
}

// A host that refuses without asking can never learn that its clock is right
// again: one wrong reading would stop it for good.
func TestAWrongClockIsAskedAgainAtTheNextCall(t *testing.T) {
	eachHost(t, func(h host) {
		h.held()
		h.ahead = 10 * time.Second
		h.date = func(int, string) string {
			h.ahead, h.date = 0, nil
			return h.now.Add(10 * time.Second).UTC().Format(http.TimeFormat)
		}
		if _, err := h.acquire("b"); !errors.Is(err, lease.ErrClockSkew) {
			t.Errorf("got error %v, want ErrClockSkew for one answer that disagrees", err)
		}
		h.granted("c")

		h.ahead = 10 * time.Second
		_, _ = h.Get(t.Context(), clocked.Name) // as a function does that is about to start
		h.ahead = 0
		if n := h.granted("d"); n != 2 {
			t.Errorf("took %d requests, want a look at the clock and the grant", n)
		}
		if n := h.granted("e"); n != 1 {
			t.Errorf("took %d requests, want 1 when the clocks agree again", n)
		}
	})
}

func TestNoVerdictOnAClockOutlivesAMinute(t *testing.T) {
	eachHost(t, func(h host) {
		asks := 1 // without a gateway, when nothing is known
		if h.gateway {
			asks = 0
		}
		h.granted("a")
		h.now = h.now.Add(time.Minute)
		if n := h.granted("b"); n != 1 {
			t.Errorf("took %d requests a minute after the clocks agreed, want 1", n)
		}
		h.now = h.now.Add(time.Minute + time.Millisecond)
		if n := h.granted("c"); n != 1+asks {
			t.Errorf("took %d requests when that was longer ago, want %d", n, 1+asks)
		}
		h.ahead = time.Hour
		_, _ = h.Get(t.Context(), clocked.Name)
		h.ahead = 0
		h.now = h.now.Add(time.Minute + time.Millisecond)
		if n := h.granted("d"); n != 1+asks {
			t.Errorf("took %d requests when the clocks had disagreed long ago, want %d", n, 1+asks)
		}
	})
}

// A store whose answers come through something that dates none has nothing to
// compare with.
func TestAStoreWithoutDatesCostsOneRequestMoreAtMost(t *testing.T) {
	for name, date := range map[string]string{"no date": "", "no time": "yesterday"} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(h host) {
				h.date = func(int, string) string { return date }
				h.granted("a")
				for _, lock := range []string{"b", "c"} {
					if n := h.granted(lock); n != 1 {
						t.Errorf("took %d requests, want 1", n)
					}
					h.now = h.now.Add(time.Hour)
				}
				h.ahead, h.date = time.Hour, nil
				_, _ = h.Get(t.Context(), clocked.Name)
				if _, err := h.acquire("d"); !errors.Is(err, lease.ErrClockSkew) {
					t.Errorf("got error %v, want ErrClockSkew from the first answer that has a date", err)
				}
			})
		})
	}
}

func TestAnAnswerThatTakesLongIsNoReasonToDoubtAClock(t *testing.T) {
	for name, dated := range map[string]time.Duration{"dated at the request": 0, "dated at the answer": 4 * time.Second} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(h host) {
				h.held()
				h.date = func(int, string) string {
					at := h.now.Add(dated)
					h.now, h.date = h.now.Add(4*time.Second), nil
					return at.UTC().Format(http.TimeFormat)
				}
				h.granted("b")
			})
		})
	}
}

func TestTheDateOfTheLastAttemptCounts(t *testing.T) {
	for name, c := range map[string]struct {
		first, second time.Duration
		want          error
	}{
		"the first was wrong":  {time.Hour, 0, nil},
		"the second was wrong": {0, time.Hour, lease.ErrClockSkew},
	} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(h host) {
				h.held()
				start := h.requests
				h.date = func(request int, header string) string {
					switch request - start {
					case 1:
						return h.now.Add(c.first).UTC().Format(http.TimeFormat)
					case 2:
						return h.now.Add(c.second).UTC().Format(http.TimeFormat)
					}
					return header
				}
				h.answered = func(request int, a *http.Response) error {
					if request == start+1 { // and tried again, as what it says is no success
						a.StatusCode = http.StatusServiceUnavailable
					}
					return nil
				}
				if _, err := h.acquire("b"); !errors.Is(err, c.want) {
					t.Errorf("got error %v, want %v", err, c.want)
				}
			})
		})
	}
}

// DynamoDB's date is compared with the clock by which leases live and end.
func TestTheClockThatDecidesIsTheOneThatIsCompared(t *testing.T) {
	x := newTable(t)
	for name, c := range map[string]struct {
		off  time.Duration
		want error
	}{"right": {0, nil}, "slow": {-10 * time.Second, lease.ErrClockSkew}, "fast": {10 * time.Second, lease.ErrClockSkew}} {
		s := &dynamolease.Store{Client: x.client, Table: x.name, Now: func() time.Time { return time.Now().Add(c.off) }}
		q := clocked
		q.Name.Lock = name
		if _, err := s.Acquire(t.Context(), q); !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
		}
	}
}
