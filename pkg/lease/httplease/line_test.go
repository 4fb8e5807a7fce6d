package httplease_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// A cable passes TCP on. From one moment on, it swallows what is sent on the
// connections that there are, and takes new ones.
type cable struct {
	net.Listener
	target string
	age    atomic.Int64
	dials  atomic.Int64
	conns  sync.Map
}

func newCable(t *testing.T, target string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &cable{Listener: l, target: target}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // closed
			}
			to, err := net.Dial("tcp", target)
			if err != nil {
				_ = from.Close()
				continue
			}
			w.dials.Add(1)
			w.conns.Store(from, to)
			born := w.age.Load()
			serving.Go(func() { w.pass(to, from, born) })
			serving.Go(func() { w.pass(from, to, born) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.conns.Range(func(from, to any) bool {
			_, _ = from.(net.Conn).Close(), to.(net.Conn).Close() // they may be closed
			return true
		})
		serving.Wait()
	})
	return w
}

func (w *cable) pass(to, from net.Conn, born int64) {
	defer to.Close()
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if w.age.Load() != born {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func secure(t *testing.T, s lease.Service) *httptest.Server {
	srv := httptest.NewUnstartedServer(&httplease.Handler{Service: s, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone})
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// trusting returns a copy of a transport that takes the server's certificate.
func trusting(t *testing.T, h *http.Transport) *http.Transport {
	h = h.Clone()
	h.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	t.Cleanup(h.CloseIdleConnections)
	return h
}

// closed is a time that has come.
var closed = func() chan time.Time { c := make(chan time.Time); close(c); return c }()

// A connection that has died keeps nobody from renewing: not with the transport
// that a client has by itself, and not with one that does not ping.
func TestOneDeadConnectionLosesNoLock(t *testing.T) {
	for name, transport := range map[string]func() http.RoundTripper{
		"its own":     func() http.RoundTripper { return trusting(t, httplease.DefaultTransport.(*http.Transport)) },
		"the default": func() http.RoundTripper { return trusting(t, http.DefaultTransport.(*http.Transport)) },
		"one in another": func() http.RoundTripper {
			inner := trusting(t, http.DefaultTransport.(*http.Transport))
			return transport(func(r *http.Request) (*http.Response, error) { return inner.RoundTrip(r) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCable(t, secure(t, new(memlease.Store)).Listener.Addr().String())
			c := &lock.Client{TTL: 5 * time.Second, Service: &httplease.Client{
				URL: "https://" + w.Addr().String(), HTTP: &http.Client{Transport: transport()}}}
			var held []*lock.Held
			for i := range 5 {
				h, err := c.Acquire(t.Context(), fmt.Sprint("a/b", i))
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, h)
			}
			dials := w.dials.Load()
			w.age.Add(1)
			var over <-chan time.Time = time.After(7 * time.Second)
			for _, h := range held {
				select {
				case <-h.Lost():
					t.Errorf("lost: %v", h.Err())
				case <-over:
					over = closed
				}
			}
			if n := w.dials.Load() - dials; n == 0 || n > 10 {
				t.Errorf("%d connections were made since, want one or a few", n)
			}
			for _, h := range held {
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// stalled answers the renewals of one lock never, and all others.
type stalled struct{ lease.Service }

func (s stalled) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	if q.Name.Lock == "slow" {
		<-ctx.Done()
		return lease.Lease{}, ctx.Err()
	}
	return s.Service.Renew(ctx, q)
}

// A service that is slow with one request is not taken for a connection that is
// dead: the other requests on it would suffer.
func TestAConnectionThatStillSpeaksIsKept(t *testing.T) {
	w := newCable(t, secure(t, stalled{new(memlease.Store)}).Listener.Addr().String())
	c := &httplease.Client{URL: "https://" + w.Addr().String(), HTTP: &http.Client{Transport: trusting(t, http.DefaultTransport.(*http.Transport))}}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
		time.AfterFunc(300*time.Millisecond, func() { _, _ = c.Get(ctx, orders) }) // that is what is heard
		_, err := c.Renew(ctx, lease.RenewRequest{Name: lease.Name{Namespace: "a", Lock: "slow"}, LeaseID: some.ID, Token: 7, TTL: time.Minute})
		cancel()
		if !errors.Is(err, lease.ErrOutcomeUnknown) {
			t.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
	}
	if n := w.dials.Load(); n != 1 {
		t.Errorf("%d connections were made, want one", n)
	}
}

// adding is a layer that adds nothing.
type adding struct{ http.RoundTripper }

func (a adding) Over(change func(http.RoundTripper) http.RoundTripper) http.RoundTripper {
	return adding{change(a.RoundTripper)}
}

func TestWaitersAndRenewalsShareNoBoundedConnections(t *testing.T) {
	for name, wrap := range map[string]func(*http.Transport) http.RoundTripper{
		"plain": func(h *http.Transport) http.RoundTripper { return h },
		"layered": func(h *http.Transport) http.RoundTripper {
			return adding{h}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(&httplease.Handler{Service: new(memlease.Store), Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone})
			defer srv.Close()
			base := &http.Transport{MaxConnsPerHost: 2}
			defer base.CloseIdleConnections()
			c := &lock.Client{TTL: 2 * time.Second, Service: &httplease.Client{URL: srv.URL, HTTP: &http.Client{Transport: wrap(base)}}}
			h, err := c.Acquire(t.Context(), "a/b")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			var waiters sync.WaitGroup
			for range 5 {
				waiters.Go(func() {
					if _, err := c.Acquire(ctx, "a/b"); !errors.Is(err, lock.ErrWaitTimeout) {
						t.Errorf("got %v, want ErrWaitTimeout", err)
					}
				})
			}
			waiters.Wait()
			if err := h.Err(); err != nil {
				t.Errorf("lost while others waited: %v", err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A connection that could not be made, or did not prove to be the service's, has
// carried nothing.
func TestWhatWasRefusedBeforeItWasSentChangedNothing(t *testing.T) {
	srv := secure(t, new(memlease.Store))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and does not speak TLS
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	impatient := &http.Transport{TLSHandshakeTimeout: 50 * time.Millisecond}
	for _, c := range []struct {
		url  string
		http *http.Client
		want error
	}{
		{srv.URL, new(http.Client), lease.ErrMisconfigured},
		{"https://" + plain.Listener.Addr().String(), new(http.Client), lease.ErrMisconfigured},
		{"https://" + mute.Addr().String(), &http.Client{Transport: impatient}, lease.ErrUnavailable},
		{"http://no-such-host.invalid", new(http.Client), lease.ErrUnavailable},
	} {
		outcomes(t, &httplease.Client{URL: c.url, HTTP: c.http}, c.want, c.want)
	}
}
