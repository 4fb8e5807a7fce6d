package httplease_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

// A caller makes requests and takes answers without allocating, so that what is
// measured is the handler's.
type caller struct {
	h      http.Handler
	r      map[string]*http.Request
	status int
	header http.Header
	answer bytes.Buffer
}

func (c *caller) Header() http.Header         { return c.header }
func (c *caller) WriteHeader(status int)      { c.status = status }
func (c *caller) Write(p []byte) (int, error) { return c.answer.Write(p) }

func calling(s lease.Service, log *slog.Logger) *caller {
	return &caller{h: &httplease.Handler{Service: s, Log: log, Caller: httplease.Anyone}, r: map[string]*http.Request{}, header: http.Header{}}
}

func (c *caller) post(b *testing.B, action string, body []byte, want int) {
	r := c.r[action]
	if r == nil {
		r = httptest.NewRequest("POST", "/v1/payments/"+action, nil)
		c.r[action] = r
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.answer.Reset()
	clear(c.header)
	c.h.ServeHTTP(c, r)
	if c.status != want {
		b.Fatalf("%s: got %d %s", action, c.status, &c.answer)
	}
}

// BenchmarkHandler is one acquire and one release, from request to answer, with
// the log that a deployment writes. What is promised is 60 µs for a request.
func BenchmarkHandler(b *testing.B) {
	logs := map[string]*slog.Logger{"silent": slog.New(slog.DiscardHandler), "logging": slog.New(slog.NewJSONHandler(io.Discard, nil))}
	for _, name := range []string{"silent", "logging"} {
		b.Run(name, func(b *testing.B) {
			c := calling(new(memlease.Store), logs[name])
			acquire := []byte(`{"lock":"orders/42","ttl_ms":30000,"holder":"worker-1"}`)
			var release []byte
			b.ReportAllocs()
			for b.Loop() {
				c.post(b, "acquire", acquire, http.StatusCreated)
				// {"namespace":…,"lock":…,"token":…,"lease_id":…: what a release needs
				// but for the namespace, in one piece.
				answer := c.answer.Bytes()
				from, to := bytes.Index(answer, []byte(`"lock"`)), bytes.Index(answer, []byte(`,"holder"`))
				release = fmt.Appendf(release[:0], "{%s}", answer[from:to])
				c.post(b, "release", release, http.StatusOK)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/request")
		})
	}
}

// BenchmarkRefusal is a request that is refused for its last member.
func BenchmarkRefusal(b *testing.B) {
	c := calling(new(memlease.Store), slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for b.Loop() {
		c.post(b, "acquire", []byte(`{"lock":"orders/42","ttl_ms":30000,"holder":"worker-1","wait":1}`), http.StatusBadRequest)
	}
}
