// Package httplease carries a [lease.Service] over HTTP: [Handler] serves one,
// [Client] is one. What goes over the wire is described by openapi.json, which
// the handler serves too.
//
// Errors survive the way: what matches a sentinel of package lease on one side
// matches it on the other. What a gateway in between answers by itself is
// translated by the client to what it says of the outcome.
//
// The handler authenticates nobody. It believes what its Caller function says,
// so it must run behind something that has checked.
package httplease

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Handler serves the HTTP API of a lock service.
type Handler struct {
	// Service grants the leases. Required.
	Service lease.Service

	// Log gets one record for each call. Nil means [slog.Default].
	Log *slog.Logger

	// Caller says who makes a request and what they may do. Nil means that nobody
	// may do anything but read the spec. See [Anyone].
	Caller func(*http.Request) Caller

	once    sync.Once
	mux     *http.ServeMux
	nowhere http.HandlerFunc
}

// answerMargin is what is left of a deadline to answer in, so that a caller
// learns that an outcome is unknown from us and not from a gateway.
const answerMargin = 300 * time.Millisecond

// routes is every call there is. The spec and API Gateway have the same.
var routes = []struct {
	method, path, action string
	serve                func(*Handler, *call) error
}{
	{"POST", "/v1/{namespace}/acquire", "acquire", (*Handler).acquire},
	{"POST", "/v1/{namespace}/renew", "renew", (*Handler).renew},
	{"POST", "/v1/{namespace}/release", "release", (*Handler).release},
	{"POST", "/v1/{namespace}/break", "break", (*Handler).breakLease},
	{"POST", "/v1/{namespace}/read", "read", (*Handler).get},
	{"GET", "/v1/openapi.json", "", (*Handler).spec},
	{"GET", "/healthz", "", (*Handler).healthz},
	{"HEAD", "/healthz", "", nil}, // monitors ask so; ServeMux takes HEAD where it takes GET, API Gateway does not
}

// allow is what a path takes that has a route for the method.
var allow = map[string]string{"POST": "POST", "GET": "GET, HEAD"}

// Routes returns the patterns of all calls, as [http.ServeMux] and API Gateway
// write them, and which of them are for everyone.
func Routes() (all, public []string) {
	for _, r := range routes {
		all = append(all, r.method+" "+r.path)
		if r.action == "" {
			public = append(public, r.method+" "+r.path)
		}
	}
	return all, public
}

// A call is one request on its way through the handler.
type call struct {
	lease.Call
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	caller Caller
	name   lease.Name
	action string
	status int

	// For the log.
	outcome  string
	token    fence.Token
	newToken fence.Token // after a break of token
	holder   string
	reason   string
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.once.Do(h.route)
	if p := r.URL.EscapedPath(); p != path.Clean(p) {
		h.nowhere(w, r) // ServeMux would redirect to the clean path, of another namespace maybe
		return
	}
	h.mux.ServeHTTP(w, r)
}

func (h *Handler) route() {
	h.mux = http.NewServeMux()
	for _, r := range routes {
		if r.serve == nil {
			continue
		}
		h.mux.HandleFunc(r.method+" "+r.path, h.serving(r.action, r.serve))
		h.mux.HandleFunc(r.path, h.serving("", func(_ *Handler, c *call) error {
			c.w.Header().Set("Allow", allow[r.method])
			return errMethod
		}))
	}
	h.nowhere = h.serving("", func(*Handler, *call) error { return errNotFound })
	h.mux.HandleFunc("/", h.nowhere)
}

// serving returns a handler that makes one call, answers it, and logs it.
func (h *Handler) serving(action string, serve func(*Handler, *call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		c := &call{w: w, r: r, action: action, name: lease.Name{Namespace: r.PathValue("namespace")}}
		if h.Caller != nil {
			c.caller = h.Caller(r)
		}
		c.Call = lease.Call{Principal: c.caller.Principal, Received: c.caller.Received}
		ctx := lease.WithCall(r.Context(), &c.Call)
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerMargin))
			defer cancel()
		}
		c.ctx = ctx
		err := c.permitted()
		if err == nil {
			err = serve(h, c)
		}
		if err != nil {
			c.refuse(err)
		}
		h.log(c, err, time.Since(started))
	}
}
