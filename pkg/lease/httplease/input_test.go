package httplease_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

// A wire sends requests as they are written, past everything that a client
// would do to them.
type wire struct {
	*testing.T
	c *httplease.Client
	s lease.Service // behind it
}

func serving(t *testing.T, s lease.Service) wire { return wire{t, service(t, s), s} }

// unchecked leaves out the spec, which takes most of the time, where a test
// repeats what others have held against it.
func (w wire) unchecked() wire {
	h := w.c.HTTP.Transport.(contract).h
	w.c.HTTP.Transport = transport(func(r *http.Request) (*http.Response, error) {
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		return a.Result(), nil
	})
	return w
}

type answer struct {
	status int
	header http.Header
	body   string

	// Of a problem.
	Code, Field, Detail string
}

func (w wire) send(method, path, body string) answer {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.c.URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := w.c.HTTP.Transport.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: string(text)}
	if a.status >= 400 {
		if err := json.Unmarshal(text, &a); err != nil || a.header.Get("Content-Type") != "application/problem+json" || a.Code == "" {
			w.Errorf("%s %s %.80q: answered %d with %q, which is no problem+json: %v", method, path, body, a.status, text, err)
		}
	}
	return a
}

// refused sends what must be refused, and checks how.
func (w wire) refused(method, path, body string, status int, code, field string) {
	w.Helper()
	if a := w.send(method, path, body); a.status != status || a.Code != code || a.Field != field {
		w.Errorf("%s %s %.80q: got %d %s for %q (%s), want %d %s for %q", method, path, body, a.status, a.Code, a.Field, a.Detail, status, code, field)
	}
}

var orders = lease.Name{Namespace: "payments", Lock: "orders/42"}

// held returns a wire to a new service, and a lease that it has granted.
func held(t *testing.T) (wire, lease.Lease) {
	t.Helper()
	w := serving(t, new(memlease.Store))
	l, err := w.s.Acquire(t.Context(), lease.AcquireRequest{Name: orders, TTL: time.Minute, Holder: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	return w, l
}

// unchanged checks that a lease is held as it was granted, that the lock beside
// it has never been granted, and that the lease can still be renewed.
func (w wire) unchanged(l lease.Lease, after string) {
	w.Helper()
	s, err := w.s.Get(w.Context(), l.Name)
	if err != nil || !s.Held || s.Token != l.Token || s.Holder != l.Holder || s.Metadata != "" || !s.ExpiresAt.Equal(l.ExpiresAt) || s.Remaining != l.Remaining {
		w.Fatalf("after %.80q: got %+v, %v, want it held by %+v", after, s, err, l)
	}
	free := lease.Name{Namespace: l.Name.Namespace, Lock: "orders/43"}
	if s, err := w.s.Get(w.Context(), free); err != nil || s != (lease.State{Name: free}) {
		w.Fatalf("after %.80q: got %+v, %v, want it never granted", after, s, err)
	}
	if _, err := w.s.Renew(w.Context(), lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: l.TTL}); err != nil {
		w.Fatalf("after %.80q the lease cannot be renewed: %v", after, err)
	}
}

// A member is one member of a request, as JSON text.
type member struct {
	name, value string
	optional    bool
	good, bad   []string
}

var (
	notText = []string{`null`, `true`, `0`, `1.5`, `[]`, `["a"]`, `{}`, `{"a":"b"}`}
	// Text that is none: broken, or with characters that break something later.
	noName = []string{
		`"\u0000"`, `"a\u001b"`, `"a\u007f"`, `"a\u0085"`, `"\ud800"`, `"\udc00\ud800"`, `"a\ud800b"`,
		"\"\xff\"", "\"a\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"a\x00\"", "\"a\nb\"", `"\x"`,
	}
	notWhole = []string{
		`null`, `true`, `[]`, `[1]`, `{}`, `""`, `"5s"`, `"60000"`, `1.5`, `1000.5`, `1.0005e3`, `1e-3`, `1000.0000000000000000001`, `-1`,
		`9007199254740992`, `4611686018427387904`, `9223372036854775807`, `9223372036854775808`,
		`-9223372036854775808`, `-9223372036854775809`, `18446744073709611616`, `1e15`, `1e400`, `1e99999999999999999999`, `-1e3`, `0x10`, `01`, `NaN`, `+1`,
	}
)

func many(s string, n int) string { return strconv.Quote(strings.Repeat(s, n)) }

func text(name, value string, limit int) member {
	return member{name, value, false,
		[]string{many("x", limit), many("é", limit/2), `"\u00e9\/\"\ud83d\udd12"`, `" "`},
		append([]string{`""`, `"a\nb"`, many("x", limit+1), many("é", limit/2+1)}, append(notText, noName...)...)}
}

func id(name, value string) member {
	return member{name, value, false,
		[]string{many("x", 22), many("_", 64), many("-", 30)},
		append([]string{`""`, many("x", 21), many("x", 65), many("é", 12), many("=", 22), many(" ", 22), many(`\u0000`, 22)}, append(notText, noName...)...)}
}

func whole(name, value string, lo, hi int) member {
	good := []string{strconv.Itoa(lo), strconv.Itoa(hi), fmt.Sprintf("%d.0", hi), fmt.Sprintf("%d00e-2", hi), fmt.Sprintf("%d.%02dE+2", hi/100, hi%100)}
	m := member{name, value, lo == 0, good, append([]string{strconv.Itoa(lo - 1), strconv.Itoa(hi + 1)}, notWhole...)}
	if lo > 0 {
		m.bad = append(m.bad, `0`, `-0`)
	}
	return m
}

// optional makes the empty value one of the good.
func optional(m member, alsoGood ...string) member {
	m.optional, m.good = true, append(m.good, alsoGood...)
	bad := m.bad
	m.bad = nil
	for _, b := range bad {
		if (b != `""` || m.name == "request_id") && b != `"a\nb"` {
			m.bad = append(m.bad, b)
		}
	}
	return m
}

type request struct {
	action  string
	members []member
}

func (q request) path() string { return "/v1/payments/" + q.action }

// body returns the request with the value of one member replaced; without it
// when the value is empty.
func (q request) body(name, value string) string {
	var parts []string
	for _, m := range q.members {
		if m.name == name {
			m.value = value
		}
		if m.value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", m.name, m.value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// requests are all that there are. All would succeed while l is held, and all
// but the last change something: a test that sees no change does not see a
// refusal by chance.
func requests(l lease.Lease) []request {
	lock, leaseID, token := text("lock", `"orders/42"`, 512), id("lease_id", strconv.Quote(l.ID)), whole("token", l.Token.String(), 1, 999_999_999_999_999)
	free := lock
	free.value = `"orders/43"`
	return []request{
		{"acquire", []member{
			free, whole("ttl_ms", `60000`, 1000, 3_600_000),
			optional(text("holder", `"worker-2"`, 256), `""`),
			optional(id("request_id", many("r", 22))),
			whole("wait_ms", `0`, 0, 20_000),
			optional(text("metadata", `"m"`, 2048), `""`, `"a\n\r\tb"`),
			whole("min_hold_ms", `1000`, 0, 60_000), // at most the TTL
			whole("lock_delay_ms", `1000`, 0, 60_000),
		}},
		{"renew", []member{lock, leaseID, token, whole("ttl_ms", `120000`, 1000, 86_400_000)}},
		{"release", []member{lock, leaseID, token}},
		{"break", []member{lock, token, text("reason", `"it is gone"`, 256)}},
		{"read", []member{lock}},
	}
}

// bubble runs check where time stands still: two states are equal if nothing
// was changed.
func bubble(t *testing.T, check func(wire, lease.Lease)) {
	synctest.Test(t, func(t *testing.T) { check(held(t)) })
}

func everyRequest(t *testing.T, check func(wire, lease.Lease, request)) {
	for i, q := range requests(some) {
		t.Run(q.action, func(t *testing.T) {
			bubble(t, func(w wire, l lease.Lease) { check(w, l, requests(l)[i]) })
		})
	}
}

func TestAWrongMemberIsNamedAndNothingIsChanged(t *testing.T) {
	everyRequest(t, func(w wire, l lease.Lease, q request) {
		if q.action != "acquire" { // which has all kinds of members
			w.unchecked()
		}
		for _, m := range q.members {
			for _, bad := range m.bad {
				body := q.body(m.name, bad)
				field := m.name
				if bad == `0x10` || bad == `01` {
					field = "" // a zero, and then something after the value
				}
				w.refused("POST", q.path(), body, http.StatusBadRequest, "invalid", field)
				w.unchanged(l, body)
			}
		}
	})
}

func TestAMissingMemberIsNamedUnlessItIsOptional(t *testing.T) {
	everyRequest(t, func(w wire, l lease.Lease, q request) {
		for _, m := range q.members {
			if body := q.body(m.name, ""); !m.optional {
				w.refused("POST", q.path(), body, http.StatusBadRequest, "invalid", m.name)
				w.unchanged(l, body)
			}
		}
	})
}

// What is granted proves that the refusals beside it are for the reason given.
func TestTheLimitsOfAMemberAreAccepted(t *testing.T) {
	everyRequest(t, func(w wire, _ lease.Lease, q request) {
		for _, m := range q.members {
			good := append(m.good, m.value)
			if m.optional {
				good = append(good, "")
			}
			for _, v := range good {
				w, l := held(w.T)
				body := requestOf(l, q.action).body(m.name, v)
				a := w.send("POST", q.path(), body)
				// A good id or token is still not that of the lease.
				if missed := a.status == http.StatusGone || a.status == http.StatusConflict; a.status/100 != 2 && (!missed || q.action == "acquire") {
					w.Errorf("%s %.80q: got %d %s (%s)", q.action, body, a.status, a.Code, a.Detail)
				}
				if m.name == "ttl_ms" && q.action == "acquire" {
					if ms, _ := strconv.ParseFloat(v, 64); !strings.Contains(a.body, fmt.Sprintf(`"ttl_ms":%.0f,`, ms)) {
						w.Errorf("asked for %s ms, got %s", v, a.body)
					}
				}
			}
		}
	})
}

func requestOf(l lease.Lease, action string) request {
	all := requests(l)
	return all[slices.IndexFunc(all, func(q request) bool { return q.action == action })]
}
