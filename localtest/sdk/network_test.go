package sdk

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A hole is a TCP proxy that can stop to forward, and takes everything all the
// same.
type hole struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	dark  chan struct{} // closed when nothing passes any more
	conns []net.Conn
}

func newHole(t *testing.T, target string) *hole {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{listener: l, target: target, dark: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() { h.serve(&serving) })
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		serving.Wait()
	})
	return h
}

func (h *hole) serve(serving *sync.WaitGroup) {
	for {
		from, err := h.listener.Accept()
		if err != nil {
			return // closed
		}
		to, err := net.Dial("tcp", h.target)
		if err != nil {
			_ = from.Close()
			continue
		}
		h.mu.Lock()
		h.conns = append(h.conns, from, to)
		h.mu.Unlock()
		serving.Go(func() { h.forward(to, from) })
		serving.Go(func() { h.forward(from, to) })
	}
}

// forward copies until it is dark. Then it reads on, and the sender hears
// nothing of what becomes of it.
func (h *hole) forward(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-h.dark:
			if err != nil {
				return
			}
			continue
		default:
		}
		if _, e := to.Write(buffer[:n]); e != nil || err != nil {
			_ = to.Close()
			return
		}
	}
}

func TestInABlackholeTheWorkHasEndedBeforeTheNextHolderBegins(t *testing.T) {
	rounds(t, func(t *testing.T) {
		w := newWorld(t)
		hole := newHole(t, strings.TrimPrefix(w.url, "http://"))
		p := start(t, "http://"+hole.listener.Addr().String(), "cut off")
		p.tell(t, "acquire")
		p.hear(t, "granted")
		p.hear(t, "renewed")
		close(hole.dark)
		h, granted := w.takeOver(t)
		bound(t, granted.Sub(w.lastRenewal()), ttl+skew+poll)

		p.tell(t, "work")
		p.tell(t, "release")
		said := p.all(t)
		lost := slices.DeleteFunc(slices.Clone(said), func(line string) bool { return !strings.HasPrefix(line, "lost") })
		if len(lost) != 1 {
			t.Fatalf("it said %q, want one loss", said)
		}
		var at int64
		if _, err := fmt.Sscanf(lost[0], "lost unconfirmed %d", &at); err != nil {
			t.Fatalf("it said %q, want ErrUnconfirmed", lost[0])
		}
		before := granted.Sub(time.Unix(0, at))
		t.Logf("stopped %v before the next was granted the lock", before.Round(time.Millisecond))
		if before <= 0 {
			t.Errorf("stopped %v after the next was granted the lock", -before)
		}
		if !slices.Contains(said, "stopped unconfirmed") {
			t.Errorf("it said %q, want that it did no work", said)
		}
		w.undisturbed(t, h)
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestTwoProcessesWithTheSameHolderAreTwoHolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := start(t, w.url, "worker"), start(t, w.url, "worker")
	one.tell(t, "try")
	token := one.hear(t, "granted")
	two.tell(t, "try")
	if got := two.said(t); got != "failed held" {
		t.Errorf("it said %q, want that it is held", got)
	}
	one.tell(t, "release")
	if got := one.hear(t, "released"); got != "well" {
		t.Errorf("released %s", got)
	}
	two.tell(t, "try")
	if got := two.hear(t, "granted"); got <= token {
		t.Errorf("got token %s after %s", got, token)
	}
	two.tell(t, "release")
	two.hear(t, "released well")
}
