package s3guard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A network carries requests to S3 and does to them what a test wants: it loses
// them or their answers, answers in the place of S3, or lets something else
// happen first. It remembers what was sent.
type network struct {
	under *http.Transport

	mu    sync.Mutex
	sent  []sent
	next  map[string][]fault
	every map[string]fault
}

// sent is a request, whatever became of it. Its kind is the method and what it
// is for, such as "PUT data" or "GET pointer".
type sent struct {
	kind   string
	url    string
	header http.Header
}

// A fault is what becomes of a request.
type fault func(forward) (response, error)

// forward carries a request out.
type forward func() (response, error)

type response = *http.Response

func newNetwork(t testing.TB) *network {
	n := &network{
		under: &http.Transport{MaxIdleConnsPerHost: 64},
		next:  make(map[string][]fault),
		every: make(map[string]fault),
	}
	t.Cleanup(n.under.CloseIdleConnections)
	return n
}

// Next lets the next requests of a kind meet these faults in turn.
func (n *network) Next(kind string, faults ...fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next[kind] = append(n.next[kind], faults...)
}

// Every lets all requests of a kind meet f.
func (n *network) Every(kind string, f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.every[kind] = f
}

// Sent returns the requests since it was last called.
func (n *network) Sent() []sent {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sent
	n.sent = nil
	return s
}

func kinds(all []sent) (kinds []string) {
	for _, s := range all {
		kinds = append(kinds, s.kind)
	}
	return kinds
}

func kind(r *http.Request) string {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case key == "":
		return r.Method + " bucket"
	case strings.HasPrefix(key, ".pawl/"):
		return r.Method + " data"
	}
	return r.Method + " pointer"
}

// Do makes a network an HTTP client of the SDK.
func (n *network) Do(r *http.Request) (response, error) {
	n.mu.Lock()
	k := kind(r)
	n.sent = append(n.sent, sent{k, r.URL.String(), r.Header.Clone()})
	f := n.every[k]
	if faults := n.next[k]; len(faults) > 0 {
		f, n.next[k] = faults[0], faults[1:]
	}
	n.mu.Unlock()
	if f == nil {
		return n.under.RoundTrip(r)
	}
	// Read here, the body can be sent now, later or twice.
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	return f(func() (response, error) {
		again := r.Clone(r.Context())
		if r.Body != nil {
			again.Body = io.NopCloser(bytes.NewReader(body))
		}
		return n.under.RoundTrip(again)
	})
}

var errCut error = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

func pass(forward forward) (response, error) { return forward() }

// cut loses the request.
func cut(forward) (response, error) { return nil, errCut }

// after carries the request out and loses the answer.
func after(f fault) fault {
	return func(forward forward) (response, error) {
		resp, err := forward()
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		return f(forward)
	}
}

// first lets something happen before the request arrives.
func first(do func(), f fault) fault {
	return func(forward forward) (response, error) {
		do()
		return f(forward)
	}
}

// say answers in the place of S3.
func say(status int, code string) fault {
	return answer(status, http.Header{}, fmt.Sprintf("<Error><Code>%s</Code><Message>injected</Message></Error>", code))
}

func answer(status int, header http.Header, body string) fault {
	return func(forward) (response, error) {
		return &http.Response{
			StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header.Clone(),
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

// half breaks the connection in the middle of the answer.
func half(forward forward) (response, error) {
	resp, err := forward()
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{}))
	return resp, err
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.Join(errCut, io.ErrUnexpectedEOF) }
