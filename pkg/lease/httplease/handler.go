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
	"slices"
	"strconv"
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

// A Caller is what a gateway found out about a request. The zero Caller is
// nobody, and may do nothing.
type Caller struct {
	// Principal is who calls; see [lease.Call]. Nobody may do nothing, whatever
	// the other fields say.
	Principal string

	// Received is when the gateway received the request; see [lease.Call].
	Received time.Time

	// Unrestricted says that the caller may do what it asks for: the gateway has
	// checked the path, as IAM does.
	Unrestricted bool

	// Scopes are what any other caller may do, each as "{namespace}/{action}":
	// "payments/acquire".
	Scopes []string
}

// Anyone lets every caller do everything, under one principal. It is for a
// [Handler] that only its own machine can reach.
func Anyone(*http.Request) Caller { return Caller{Principal: "anyone", Unrestricted: true} }

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

// permitted fails unless the caller may make this call.
func (c *call) permitted() error {
	scope := c.name.Namespace + "/" + c.action
	switch {
	case c.action == "": // for everyone
		return nil
	case c.caller.Principal == "":
		return &lease.ForbiddenError{Reason: "the gateway vouches for no caller"}
	case c.caller.Unrestricted || slices.Contains(c.caller.Scopes, scope):
		return nil
	}
	return &lease.ForbiddenError{Reason: "the caller needs the scope " + strconv.Quote(scope)}
}

// log writes the one line that a call leaves. It never has a lease id: who
// reads logs must not be able to release what others hold.
func (h *Handler) log(c *call, err error, took time.Duration) {
	log := h.Log
	if log == nil {
		log = slog.Default()
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("action", c.action),
		slog.String("namespace", c.name.Namespace),
		slog.String("lock", c.name.Lock),
		slog.Int64("token", int64(c.token)),
		slog.String("holder", c.holder),
		slog.String("principal", c.Principal),
		slog.String("outcome", c.outcome),
		slog.Int("status", c.status),
		slog.Int("store_requests", c.Requests),
		slog.Float64("store_ms", ms(c.StoreTime)),
		slog.Float64("ms", ms(took)),
	}
	if c.reason != "" {
		attrs = append(attrs, slog.String("reason", c.reason))
	}
	if c.newToken != 0 {
		attrs = append(attrs, slog.Int64("new_token", int64(c.newToken)))
	}
	if c.status >= 500 {
		level = slog.LevelError
		attrs = append(attrs, slog.Any("error", err))
	}
	log.LogAttrs(c.ctx, level, "call", attrs...)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
