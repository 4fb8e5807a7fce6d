package httplease_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

const alice = "arn:aws:iam::123456789012:role/alice"

// A logged is a wire to a handler whose log is read.
type logged struct {
	wire
	log *bytes.Buffer
}

func logging(t *testing.T, s lease.Service) logged {
	log := new(bytes.Buffer)
	w := serving(t, s)
	w.c.HTTP.Transport = contract{t, &httplease.Handler{
		Service: s,
		Log:     slog.New(slog.NewJSONHandler(log, nil)),
		Caller: func(*http.Request) httplease.Caller {
			return httplease.Caller{Principal: alice, Name: "alice", Unrestricted: true}
		},
	}}
	return logged{w, log}
}

type record map[string]any

// call sends a request and checks the one record that it leaves, which has the
// members of want and those that every record has.
func (w logged) call(method, path, body string, want record) answer {
	w.Helper()
	w.log.Reset()
	a := w.send(method, path, body)
	var got record
	if err := json.Unmarshal(w.log.Bytes(), &got); err != nil || strings.Count(w.log.String(), "\n") != 1 {
		w.Fatalf("%s %s %.80q: want one record, got %q", method, path, body, w.log)
	}
	all := record{"msg": "call", "level": "INFO", "action": "", "namespace": "", "lock": "", "token": 0, "holder": "", "principal": alice, "status": a.status, "store_requests": 0, "store_ms": 0}
	if strings.HasPrefix(path, "/v1/payments/") {
		all["namespace"], all["lock"] = "payments", "a"
		all["action"] = strings.TrimPrefix(path, "/v1/payments/")
	}
	maps.Copy(all, want)
	for _, always := range []string{"time", "ms"} {
		if _, ok := got[always]; !ok {
			w.Errorf("%s %s: the record has no %s", method, path, always)
		}
		delete(got, always)
	}
	if fmt.Sprint(got) != fmt.Sprint(readBack(w.T, all)) {
		w.Errorf("%s %s %.80q: the record is\n%v, want\n%v", method, path, body, got, all)
	}
	return a
}

// readBack makes every number of r what it is after JSON.
func readBack(t *testing.T, r record) (back record) {
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestACallLeavesOneRecordThatSaysWhatCameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := logging(t, new(memlease.Store))
		time.Sleep(time.Until(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))) // tokens of before 2020 are made up
		first := time.Now().UnixMilli() + 1                                 // the first token
		rid := `"request_id":"` + strings.Repeat("r", 22) + `"`
		acquire := `{"lock":"a","ttl_ms":60000,"holder":"worker-1",` + rid + `}`
		a := w.call("POST", "/v1/payments/acquire", acquire, record{"outcome": "granted", "status": 201, "token": first, "holder": "worker-1"})
		var l struct {
			ID string `json:"lease_id"`
		}
		if err := json.Unmarshal([]byte(a.body), &l); err != nil || l.ID == "" {
			t.Fatal(a.body, err)
		}
		mine := fmt.Sprintf(`{"lock":"a","lease_id":%q,"token":%d`, l.ID, first)
		brk := func(token int64) string { return fmt.Sprintf(`{"lock":"a","token":%d,"reason":"it is\tgone"}`, token) }
		w.call("POST", "/v1/payments/acquire", acquire, record{"outcome": "repeated", "status": 200, "token": first, "holder": "worker-1"})
		w.call("POST", "/v1/payments/acquire", strings.Replace(acquire, "worker-1", "worker-2", 1), record{"outcome": "request_conflict", "status": 409, "holder": "worker-2"})
		w.call("POST", "/v1/payments/acquire", `{"lock":"a","ttl_ms":1000,"holder":"é"}`, record{"outcome": "held", "status": 409, "token": first, "holder": "é"})
		w.call("POST", "/v1/payments/renew", mine+`,"ttl_ms":61000}`, record{"outcome": "renewed", "status": 200, "token": first, "holder": "worker-1"})
		w.call("POST", "/v1/payments/read", `{"lock":"a"}`, record{"outcome": "read", "status": 200, "token": first, "holder": "worker-1"})
		w.call("POST", "/v1/payments/break", strings.ReplaceAll(brk(first+1), `\t`, " "), record{"outcome": "token_changed", "status": 409, "token": first, "reason": "it is gone"})
		w.call("POST", "/v1/payments/break", brk(first), record{"outcome": "invalid", "status": 400, "token": first, "reason": `it is\tgone`})
		w.call("POST", "/v1/payments/release", mine+`}`, record{"outcome": "released", "status": 200, "token": first, "holder": "worker-1"})
		w.call("POST", "/v1/payments/release", mine+`}`, record{"outcome": "released_before", "status": 200, "token": first, "holder": "worker-1"})
		w.call("POST", "/v1/payments/break", `{"lock":"a","token":1,"reason":"gone"}`, record{"outcome": "already_free", "status": 200, "token": 1, "holder": "worker-1", "reason": "gone"})
		w.call("POST", "/v1/payments/acquire", acquire, record{"outcome": "request_spent", "status": 409, "holder": "worker-1"})
		w.call("POST", "/v1/payments/renew", mine+`,"ttl_ms":61000}`, record{"outcome": "lease_lost", "status": 410, "token": first, "late": true})
		w.call("POST", "/v1/payments/acquire", `{"lock":"a","ttl_ms":1000}`, record{"outcome": "granted", "status": 201, "token": first + 1, "holder": "alice"})
		time.Sleep(time.Minute)
		w.call("POST", "/v1/payments/acquire", `{"lock":"a","ttl_ms":1000,"holder":"w"}`, record{"outcome": "granted_abandoned", "status": 201, "token": first + 2, "holder": "w"})
		w.call("POST", "/v1/payments/release", mine+`}`, record{"outcome": "lease_lost", "status": 410, "token": first, "late": true})
		madeUp := fmt.Sprintf(`{"lock":"a","lease_id":%q,"token":%d`, l.ID, first+1000)
		w.call("POST", "/v1/payments/renew", madeUp+`,"ttl_ms":1000}`, record{"outcome": "lease_lost", "status": 410, "token": first + 1000})
		w.call("POST", "/v1/payments/release", madeUp+`}`, record{"outcome": "lease_lost", "status": 410, "token": first + 1000})
		// The token of a break is that of the lease that was broken.
		w.call("POST", "/v1/payments/break", strings.ReplaceAll(brk(first+2), `\t`, " "), record{"outcome": "broken", "status": 200, "token": first + 2, "holder": "w", "new_token": first + 3, "reason": "it is gone"})
		a = w.call("POST", "/v1/payments/acquire", `{"lock":"a","ttl_ms":1000}`, record{"outcome": "granted", "status": 201, "token": first + 4, "holder": "alice"})
		_, id, _ := strings.Cut(a.body, `"lease_id":"`)
		time.Sleep(time.Minute)
		ours := fmt.Sprintf(`{"lock":"a","lease_id":%q,"token":%d`, id[:22], first+4)
		w.call("POST", "/v1/payments/renew", ours+`,"ttl_ms":1000}`, record{"outcome": "lease_expired", "status": 410, "token": first + 4, "late": true})
		w.call("POST", "/v1/payments/release", ours+`}`, record{"outcome": "released_late", "status": 200, "token": first + 4, "holder": "alice"})

		b := strings.Replace(acquire, `"a"`, `"b"`, 1)
		byRequest := `{"lock":"b",` + rid + `}`
		a = w.call("POST", "/v1/payments/acquire", b, record{"outcome": "granted", "status": 201, "lock": "b", "token": first + 120_000, "holder": "worker-1"})
		w.call("POST", "/v1/payments/release", byRequest, record{"outcome": "released", "status": 200, "lock": "b", "token": first + 120_000, "holder": "worker-1"})
		w.call("POST", "/v1/payments/release", byRequest, record{"outcome": "released_before", "status": 200, "lock": "b", "token": first + 120_000, "holder": "worker-1"})
		w.call("POST", "/v1/payments/release", strings.ReplaceAll(byRequest, "rrr", "sss"), record{"outcome": "withdrawn", "status": 200, "lock": "b"})

		w.call("POST", "/v1/payments/acquire", `{"lock":"a","ttl_ms":1,"holder":"w"}`, record{"outcome": "invalid", "status": 400, "holder": "w"})
		w.call("POST", "/v1/payments/acquire", `{"lock":"a`, record{"outcome": "invalid", "status": 400, "lock": ""})
		w.call("POST", "/v1/payments/release", strings.Repeat(" ", 1<<15), record{"outcome": "too_large", "status": 413, "lock": ""})
		w.call("POST", "/v1/payments/read", `{}`, record{"outcome": "invalid", "status": 400, "lock": ""})
		w.call("GET", "/v1/payments/acquire", "", record{"outcome": "method_not_allowed", "status": 405, "lock": "", "action": ""})
		w.call("GET", "/v1/payments/steal", "", record{"outcome": "not_found", "status": 404, "lock": "", "action": "", "namespace": ""})
		w.call("GET", "//healthz", "", record{"outcome": "not_found", "status": 404})
		w.call("GET", "/healthz", "", record{"outcome": "read", "status": 200})
		w.call("GET", "/v1/openapi.json", "", record{"outcome": "read", "status": 200})
	})
}

// What the caller is told in one line is told here in full.
func TestAFailureIsLoggedAsAnErrorWithItsCause(t *testing.T) {
	for _, kind := range []error{lease.ErrMisconfigured, lease.ErrUnavailable, lease.ErrClockSkew, lease.ErrQuarantine, lease.ErrOutcomeUnknown, lease.ErrThrottled, lease.ErrForbidden, errors.New("a mystery")} {
		err := &lease.RetryError{Err: fmt.Errorf("%w: table Locks: AccessDenied", kind), After: time.Second}
		w := logging(t, failing{err})
		for _, q := range requests(some) {
			a := w.send("POST", q.path(), q.body("lock", `"a"`))
			want := record{"outcome": a.Code}
			if a.status >= 500 {
				want["level"], want["error"] = "ERROR", err.Error()
			}
			switch q.action {
			case "acquire":
				want["holder"] = "worker-2"
			case "break":
				want["token"], want["reason"] = 7, "it is gone"
			case "renew", "release":
				want["token"] = 7
			}
			w.call("POST", q.path(), q.body("lock", `"a"`), want)
			if strings.Contains(a.body, "table Locks") {
				t.Errorf("%s: the cause crossed the border: %s", q.action, a.body)
			}
		}
	}
}

// costing is a service that asks its store twice for everything.
type costing struct{ failing }

func (costing) Get(ctx context.Context, n lease.Name) (lease.State, error) {
	c := lease.CallFrom(ctx)
	c.Requests, c.StoreTime = c.Requests+2, c.StoreTime+3400*time.Microsecond
	time.Sleep(5 * time.Millisecond)
	return lease.State{Name: n}, nil
}

func TestTheCostOfACallIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := logging(t, costing{})
		for range 2 { // and not added up
			w.call("POST", "/v1/payments/read", `{"lock":"a"}`, record{"outcome": "read", "status": 200, "store_requests": 2, "store_ms": 3.4})
			if !strings.Contains(w.log.String(), `"ms":5,`) && !strings.Contains(w.log.String(), `"ms":5}`) {
				t.Errorf("want 5 ms, got %s", w.log)
			}
		}
	})
}

// Whoever reads the log, or an answer to someone else's mistake, must not be
// able to release what others hold.
func TestALeaseIDIsInNoRecordAndInNoProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := logging(t, new(memlease.Store))
		l, err := w.c.Acquire(t.Context(), lease.AcquireRequest{Name: orders, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		w.unchecked()
		var answers strings.Builder
		send := func(method, path, body string) {
			if a := w.send(method, path, body); a.status >= 400 || !strings.Contains(path, "acquire") && !strings.Contains(path, "renew") {
				answers.WriteString(a.body + a.header.Get("Retry-After") + "\n")
			}
		}
		id := l.ID
		for _, q := range requests(l) {
			for _, m := range q.members {
				send("POST", "/v1/payments/read", `{"lock":"orders/42"}`)
				for _, v := range []string{
					`"` + id + `"`, `["` + id + `"]`, `{"` + id + `":"` + id + `"}`, `"` + id, `"` + id + `"` + id, `"\ud800` + id + `"`, `"` + id + `\ud800` + id + `"`,
					`"\u00` + id + `"`, `"\` + id + `"`, `"` + id + `\u0000"`, "\"" + id + "\xff" + id + "\"", `"` + id + id + id + `"`, id, `1` + id, `nul` + id,
				} {
					if m.name != "lease_id" && !strings.HasPrefix(v, `[`) && json.Valid([]byte(v)) {
						continue // as a text of another meaning it is one
					}
					send("POST", q.path(), q.body(m.name, v))
				}
			}
			whole := q.body("", "")
			for _, body := range []string{
				strings.TrimSuffix(whole, "}") + `,"extra":"` + id + `"}`, strings.TrimSuffix(whole, "}") + `,"lease_id":"` + id + `","lease_id":"` + id + `"}`,
				whole + `"` + id + `"`, whole + id, id, `"` + id + `"`, strings.Repeat(id, 1000), whole[:len(whole)-1], whole,
			} {
				send("POST", q.path(), body)
				send("POST", "/v1/Payments/"+q.action, body)
				send("PUT", q.path(), body)
			}
		}
		for i := range len(id) - 5 {
			if part := id[i : i+6]; strings.Contains(w.log.String(), part) {
				t.Fatalf("%s is in the log as %s:\n%s", id, part, w.log)
			} else if strings.Contains(answers.String(), part) {
				t.Fatalf("%s is in an answer as %s:\n%s", id, part, answers.String())
			}
		}
		if n := strings.Count(w.log.String(), "\n"); n < 200 {
			t.Errorf("looked at %d records only", n)
		}
	})
}

// A log line is paid for by its length, and read by people: whatever a caller
// writes, it is short, and shows what it has.
func TestALogLineIsShortAndLegibleWhateverACallerWrites(t *testing.T) {
	w := logging(t, failing{fmt.Errorf("%w: %s", lease.ErrMisconfigured, strings.Repeat("\u202e", 5000))})
	w.c.HTTP.Transport = transport(func(r *http.Request) (*http.Response, error) {
		h := &httplease.Handler{Service: w.s, Log: slog.New(slog.NewJSONHandler(w.log, nil)), Caller: func(*http.Request) httplease.Caller {
			return httplease.Caller{Principal: "iss#" + strings.Repeat("\u2066\"", 9000), Unrestricted: true}
		}}
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		return a.Result(), nil
	})
	const metrics = 450 // what functions/api adds to a line
	for _, c := range []struct{ one, shown string }{
		{"a", "a"}, {`\"`, `"`}, {`\\`, `\`}, {"<", "<"}, {"é", "é"}, {"🔒", "🔒"}, {`\u0000`, `\x00`}, {`\u001b`, `\x1b`}, {`\n`, `\n`}, {"\x7f", `\x7f`}, {`\u0085`, `\u0085`},
		{"\u2028", `\u2028`}, {"\u2029", `\u2029`}, {"\u202a", `\u202a`}, {"\u202e", `\u202e`}, {"\u2066", `\u2066`}, {"\u2069", `\u2069`}, {"\u200b", `\u200b`}, {"\u200d", `\u200d`},
		{"\ufeff", `\ufeff`}, {"\u00ad", `\u00ad`}, {"\u061c", `\u061c`}, {"\u034f", `\u034f`}, {"\ufe0f", `\ufe0f`}, {"\u115f", `\u115f`}, {"\U000e0041", `\U000e0041`}, {"\U000e0100", `\U000e0100`},
	} {
		for _, n := range []int{1, 200, 512, 1200} {
			text := `"` + strings.Repeat(c.one, n) + `"`
			namespace := strings.Repeat("%E2%80%AE", 60) // not valid, and so many
			for _, q := range requests(some) {
				for i, m := range q.members {
					if m.name == "lock" || m.name == "holder" || m.name == "reason" {
						q.members[i].value = text
					}
				}
				for _, path := range []string{q.path(), "/v1/" + namespace + "/" + q.action} {
					w.log.Reset()
					w.send("POST", path, q.body("", ""))
					var got struct{ Lock string }
					if err := json.Unmarshal(w.log.Bytes(), &got); err != nil || w.log.Len() > 4096-metrics {
						t.Fatalf("%s of %d %q: %v, %d bytes: %s", q.action, n, c.one, err, w.log.Len(), w.log)
					}
					short := strings.Contains(got.Lock, "… and ")
					if n == 1 && got.Lock != c.shown || n > 1 && !strings.HasPrefix(got.Lock, strings.Repeat(c.shown, 64)) {
						t.Errorf("%s of %d %q is logged as %.100q", q.action, n, c.one, got.Lock)
					} else if n == 1200 && !short || n == 200 && len(c.shown) < 3 && short {
						t.Errorf("%s of %d %q is cut: %t, %q", q.action, n, c.one, short, got.Lock)
					}
				}
			}
		}
	}
	w.send("POST", "/v1/payments/acquire", `{"lock":"`+strings.Repeat("x", 600)+`"}`)
	if want := strings.Repeat("x", 512) + `… and 88 bytes more"`; !strings.Contains(w.log.String(), want) {
		t.Errorf("%s has not %s", w.log, want)
	}
}
