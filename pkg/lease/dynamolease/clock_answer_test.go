package dynamolease_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

func TestALeaseIsGivenBackIfItsAnswerTellsThatTheClockIsOff(t *testing.T) {
	eachHost(t, func(h host) {
		h.granted("b")
		h.ahead = time.Minute
		if got, err := h.acquire("a"); !errors.Is(err, lease.ErrClockSkew) || errors.Is(err, lease.ErrOutcomeUnknown) {
			t.Errorf("got %v, %v, want ErrClockSkew", got, err)
		}
		if s := h.state(); s.Held || s.Token == 0 {
			t.Errorf("got %v, want it granted and released", s)
		}
	})
}

func TestALeaseThatCannotBeGivenBackIsAnUnknownOutcome(t *testing.T) {
	eachHost(t, func(h host) {
		h.granted("b")
		h.ahead = time.Minute
		start := h.requests
		h.answered = func(request int, _ *http.Response) error {
			if request == start+1 {
				return nil
			}
			return errors.New("lost")
		}
		if got, err := h.acquire("a"); !errors.Is(err, lease.ErrOutcomeUnknown) {
			t.Errorf("got %v, %v, want ErrOutcomeUnknown", got, err)
		}
	})
}

// The host was paused, and its clock stood. What it renews may be another's.
func TestARenewalIsNotReliedOnIfItsAnswerTellsThatTheClockIsOff(t *testing.T) {
	for what, ttl := range map[string]time.Duration{"extended": time.Hour, "as it was": time.Second} {
		t.Run(what, func(t *testing.T) {
			eachHost(t, func(h host) {
				l := h.held()
				h.ahead = 3500 * time.Millisecond
				for range 2 {
					if got, err := h.Renew(h.call(), renewalOf(l, ttl)); !errors.Is(err, lease.ErrClockSkew) {
						t.Errorf("got %v left, %v, want ErrClockSkew", got.Remaining, err)
					}
				}
				h.ahead = 0
				if _, err := h.Renew(h.call(), renewalOf(l, ttl)); err != nil {
					t.Errorf("when the clock is right again: %v", err)
				}
			})
		})
	}
}

func TestTwoHostsNeverRelyOnALockBecauseOneClockStood(t *testing.T) {
	eachHost(t, func(h host) {
		q := clocked
		q.TTL = 2 * time.Second
		l := must[lease.Lease](t)(h.Acquire(h.call(), q))
		h.ahead = 3500 * time.Millisecond // has passed, and this host has not noticed
		_, renew := h.Renew(h.call(), renewalOf(l, q.TTL))
		other := &dynamolease.Store{Table: h.Table, Now: func() time.Time { return h.now.Add(h.ahead) }}
		other.Client = following(other, h.Client.Options())
		_, acquire := other.Acquire(t.Context(), q)
		if acquire != nil || !errors.Is(renew, lease.ErrClockSkew) {
			t.Errorf("the paused host: %v, another: %v, want ErrClockSkew and a grant", renew, acquire)
		}
	})
}

func TestABreakTellsThatTheClockIsOff(t *testing.T) {
	for what, c := range map[string]struct {
		prepare func(host, *lease.Lease)
		broken  bool
	}{
		"of a lease that it has ended": {func(host, *lease.Lease) {}, true},
		"of another lease":             {func(_ host, l *lease.Lease) { l.Token-- }, false},
		"of a lock that is free": {func(h host, l *lease.Lease) {
			must[lease.State](h.T)(h.Release(h.call(), releaseOf(*l)))
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			eachHost(t, func(h host) {
				l := h.held()
				token := l.Token
				c.prepare(h, &l)
				h.ahead = time.Minute
				// What was done is not told as if nothing had been changed.
				if b, err := h.Break(h.call(), breakOf(l)); !errors.Is(err, lease.ErrClockSkew) || errors.Is(err, lease.ErrOutcomeUnknown) != c.broken {
					t.Errorf("got %v, %v, want ErrClockSkew", b, err)
				}
				if s := h.state(); (s.Token == token+1) != c.broken {
					t.Errorf("token %d became %d", token, s.Token)
				}
			})
		})
	}
}

func TestReleasingNeedsNoClock(t *testing.T) {
	eachHost(t, func(h host) {
		l := h.held()
		h.ahead = time.Hour
		if _, err := h.Release(h.call(), releaseOf(l)); err != nil {
			t.Error(err)
		}
	})
}

// The answer to the attempt that was applied is lost. What the item tells comes
// first: the lease must not stay behind.
func TestAGrantWithoutAnAnswerIsFoundBeforeAClockIsDoubted(t *testing.T) {
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		then func(host) // with the answer that is lost
		err  error
		held bool
	}{
		"on a clock that is right":        {func(host) {}, nil, true},
		"on a clock that is off":          {func(h host) { h.ahead = time.Minute }, lease.ErrClockSkew, false},
		"on a clock that is set":          {func(h host) { h.now = h.now.Add(10 * time.Second) }, nil, true},
		"when it has run out":             {func(h host) { h.now = h.now.Add(time.Minute) }, lease.ErrRequestSpent, false},
		"when somebody has broken it":     {breaking, lease.ErrRequestSpent, false},
		"broken, and on a clock gone off": {func(h host) { breaking(h); h.ahead = time.Hour }, lease.ErrRequestSpent, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachHost(t, func(h host) {
				h.granted("b")
				want := c.err
				if h.gateway && name == "when it has run out" {
					want = lease.ErrClockSkew // the gateway has given up too
				}
				start := h.requests
				h.answered = func(request int, _ *http.Response) error {
					if request != start+1 {
						return nil
					}
					c.then(h)
					return lost
				}
				l, err := h.acquire("a")
				if !errors.Is(err, want) || errors.Is(err, lease.ErrOutcomeUnknown) || l.Repeated {
					t.Errorf("got %+v, %v, want error %v", l, err, want)
				}
				if s := h.state(); s.Held != c.held || s.Token == 0 {
					t.Errorf("got %v, want it granted, and held still: %t", s, c.held)
				}
			})
		})
	}
}

// breaking ends the lease over another line, whose clock is right.
func breaking(h host) {
	s := &dynamolease.Store{Table: h.Table, Now: h.Now}
	o := h.Client.Options()
	o.HTTPClient = h.HTTPClient
	s.Client = following(s, o)
	state := must[lease.State](h.T)(s.Get(h.T.Context(), clocked.Name))
	must[lease.Broken](h.T)(s.Break(h.T.Context(), lease.BreakRequest{Name: clocked.Name, Token: state.Token, Reason: "test"}))
}
