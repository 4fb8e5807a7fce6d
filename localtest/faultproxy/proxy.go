package faultproxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Proxy passes requests on to an engine, except for those that are to meet a
// [Fault]. It is safe for concurrent use.
type Proxy struct {
	// URL is where it listens.
	URL string

	engine string
	server *httptest.Server
	client *http.Client
	closed chan struct{}

	mu    sync.Mutex
	next  map[string][]Fault
	every map[string]Fault
	log   []*Exchange
}

// Start returns a proxy in front of the engine at a URL. It ends with the test.
func Start(t testing.TB, engine string) *Proxy {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	p := &Proxy{
		engine: engine,
		client: &http.Client{Transport: transport, Timeout: 20 * time.Second},
		closed: make(chan struct{}),
		next:   make(map[string][]Fault),
		every:  make(map[string]Fault),
	}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	p.URL = p.server.URL
	t.Cleanup(func() {
		close(p.closed) // lets go of what hangs, which the server would wait for
		p.server.CloseClientConnections()
		p.server.Close()
		transport.CloseIdleConnections()
	})
	return p
}

// Next lets the next requests of an operation, such as "UpdateItem", meet these
// faults in turn, before what Every says.
func (p *Proxy) Next(operation string, faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[operation] = append(p.next[operation], faults...)
}

// Every lets all requests of an operation meet f; [Pass] ends that.
func (p *Proxy) Every(operation string, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every[operation] = f
}

// Seen returns the requests of an operation so far, in the order of arrival.
func (p *Proxy) Seen(operation string) []*Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	var seen []*Exchange
	for _, x := range p.log {
		if x.Operation == operation {
			seen = append(seen, x)
		}
	}
	return seen
}

// Done returns how often the engine has carried out an operation.
func (p *Proxy) Done(operation string) int {
	n := 0
	for _, x := range p.Seen(operation) {
		n += x.done()
	}
	return n
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	x := &Exchange{Operation: operation, Body: body, proxy: p, w: w, r: r}
	p.fate(x)(x)
	if !x.answered {
		panic(http.ErrAbortHandler) // closes the connection
	}
}

// fate records x and decides what becomes of it.
func (p *Proxy) fate(x *Exchange) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, x)
	if faults := p.next[x.Operation]; len(faults) > 0 {
		p.next[x.Operation] = faults[1:]
		return faults[0]
	}
	if f := p.every[x.Operation]; f != nil {
		return f
	}
	return Pass
}

// An Exchange is one request on its way and, if it gets one, its answer.
type Exchange struct {
	Operation string
	Body      []byte

	proxy    *Proxy
	w        http.ResponseWriter
	r        *http.Request
	answered bool

	mu      sync.Mutex
	carried int // how often the engine has carried it out
}

// Forward has the engine execute the request and returns the answer. Each call
// executes it, also when the client has long gone.
func (x *Exchange) Forward() Answer {
	ctx := context.WithoutCancel(x.r.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.proxy.engine, bytes.NewReader(x.Body))
	if err != nil {
		return Answer{Err: err}
	}
	r.Header = x.r.Header.Clone()
	resp, err := x.proxy.client.Do(r)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusOK {
		x.mu.Lock()
		x.carried++
		x.mu.Unlock()
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body, Err: err}
}

// Reply sends an answer. Without one, or with one that has an error, the
// connection is closed.
func (x *Exchange) Reply(a Answer) {
	if a.Err != nil {
		return
	}
	for _, name := range []string{"Content-Type", "Content-Length", "Date", "X-Amz-Crc32", "X-Amzn-Requestid"} {
		if v := a.Header.Get(name); v != "" {
			x.w.Header().Set(name, v)
		}
	}
	x.w.WriteHeader(a.Status)
	_, _ = x.w.Write(a.Body) // the client may have gone
	x.answered = true
}

// Await blocks until the client gives up.
func (x *Exchange) Await() {
	select {
	case <-x.r.Context().Done():
	case <-x.proxy.closed:
	}
}

func (x *Exchange) done() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.carried
}
