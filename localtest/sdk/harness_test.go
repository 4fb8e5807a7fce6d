package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

const (
	skew = time.Second // that of [protocol.Rules], by default
	poll = time.Second // how often a waiter looks, at the least

	// slack is what a busy machine may add.
	slack = 3 * time.Second

	// patience is how long a test waits for a line before it fails.
	patience = 40 * time.Second
)

var name = lease.Name{Namespace: "test", Lock: "it"}

// A world is a lock service and a ledger, for one lock.
type world struct {
	lease.Service // what the server serves
	url           string

	mu      sync.Mutex
	waits   chan string          // the holder of each acquire that arrives and may wait
	granted chan string          // and of each that is granted
	grants  map[string]time.Time // the last one, by holder
	count   map[string]int       // of grants, by holder
	renewed time.Time            // the last time
	written []fence.Token
	refused int
}

// newWorld starts one. As behind API Gateway, a request goes on when its caller
// has gone.
func newWorld(t *testing.T) *world {
	w := &world{Service: new(memlease.Store), waits: make(chan string, 100), granted: make(chan string, 100), grants: make(map[string]time.Time), count: make(map[string]int)}
	handler := &httplease.Handler{Service: w, Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/", func(a http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(a, r.WithContext(context.WithoutCancel(r.Context())))
	})
	mux.HandleFunc("/ledger", w.ledger)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	if q.Wait > 0 {
		offer(w.waits, q.Holder)
	}
	l, err := w.Service.Acquire(ctx, q)
	if err == nil && !l.Repeated {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.grants[q.Holder] = time.Now()
		w.count[q.Holder]++
		offer(w.granted, q.Holder)
	}
	return l, err
}

// offer sends, unless nobody looks any more.
func offer(to chan string, what string) {
	select {
	case to <- what:
	default:
	}
}

func (w *world) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	l, err := w.Service.Renew(ctx, q)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.renewed = time.Now()
	}
	return l, err
}

// ledger accepts a write unless a later holder has written before.
func (w *world) ledger(a http.ResponseWriter, r *http.Request) {
	token, err := fence.Parse(r.URL.Query().Get("token"))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || len(w.written) > 0 && token < w.written[len(w.written)-1] {
		w.refused++
		a.WriteHeader(http.StatusConflict)
		return
	}
	w.written = append(w.written, token)
}

func (w *world) lastRenewal() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.renewed
}

// client returns one in this process, by the same way.
func (w *world) client(holder string) *lock.Client {
	return &lock.Client{Service: &httplease.Client{URL: w.url}, TTL: ttl, Holder: holder}
}

// takeOver waits for the lock and says when it was granted.
func (w *world) takeOver(t *testing.T) (*lock.Held, time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h, err := w.client("successor").Acquire(ctx, name.String())
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return h, w.grants["successor"]
}

// undisturbed fails unless h is held, here and by the service.
func (w *world) undisturbed(t *testing.T, h *lock.Held) {
	t.Helper()
	s, err := w.Get(t.Context(), name)
	if err != nil || !s.Held || s.Token != h.Token() || h.Err() != nil {
		t.Errorf("got %v, errors %v and %v, want token %d still held", s, err, h.Err(), h.Token())
	}
}

// A peer is a child as seen from here.
type peer struct{ *process.Talk }

// start starts a child that reaches the service by url.
func start(t *testing.T, url, holder string) peer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "ROLE=child", "URL="+url, "LOCK="+name.String(), "HOLDER="+holder)
	p, err := process.StartTalk(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Exited()
	})
	return peer{p}
}

func (p peer) tell(t *testing.T, what string) {
	t.Helper()
	if err := p.Tell(what); err != nil {
		t.Fatal(err)
	}
}

// said returns the next line, whatever it is.
func (p peer) said(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line, err := p.Hear(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// hear waits for a line that begins with what and returns the rest of it.
func (p peer) hear(t *testing.T, what string) string {
	t.Helper()
	for {
		line := p.said(t)
		if rest, found := strings.CutPrefix(line, what); found {
			return strings.TrimSpace(rest)
		}
		if strings.HasPrefix(line, "failed") || strings.HasPrefix(line, "lost") {
			t.Fatalf("it said %q, want %q", line, what)
		}
	}
}

// all lets the process end and returns what it still said.
func (p peer) all(t *testing.T) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return p.Rest(ctx)
}

// rounds runs a test five times or more, side by side.
func rounds(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	for i := range 5 * rigor.Rounds(t) {
		t.Run(fmt.Sprint("round ", i), func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
}
