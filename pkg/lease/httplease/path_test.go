package httplease_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

func TestAWrongNamespaceIsNamedOrNotFound(t *testing.T) {
	everyRequest(t, func(w wire, l lease.Lease, q request) {
		w.unchecked()
		for _, bad := range []string{
			"Payments", "PAYMENTS", "-payments", "payments-", "-", "pay_ments", "pay.ments", "pay:ments", "payments%20", "%20payments",
			strings.Repeat("a", 64), "a%2Fb", "payments%2Forders", "%2Fpayments", "a%23b", "%23", "payments%23", "a%3Fb", "%00", "payments%00",
			"%ff", "p%C3%A9", "%EF%BC%90", "%2e%2e", "%2E", "payments%0a", "*", "{namespace}", "%7Bnamespace%7D", "payments;x=1", "$default",
		} {
			path := "/v1/" + bad + "/" + q.action
			w.refused("POST", path, q.body("", ""), http.StatusBadRequest, "invalid", "namespace")
			w.unchanged(l, path)
		}
		for _, lost := range []string{
			"/v1//%s", "/v1/payments//%s", "/v1/a/../payments/%s", "/v1/./payments/%s", "/v1/payments/./%s", "//v1/payments/%s", "/v1/payments/x/../%s",
			"/v1/payments/%s/", "/v1/payments/%s/x", "/v1/payments/orders/%s", "/v1/payments%%2F%s", "/%s", "/v2/payments/%s", "/V1/payments/%s",
			"/prod/v1/payments/%s", "/v1/payments/%s%%20", "/v1/payments/%%20%s",
		} {
			path := fmt.Sprintf(lost, q.action)
			w.refused("POST", path, q.body("", ""), http.StatusNotFound, "not_found", "")
			w.unchanged(l, path)
		}
	})
}

// The JSON texts are written by hand: a client of ours would encode as ours
// decodes.
func TestALockComesBackByteForByte(t *testing.T) {
	w := serving(t, new(memlease.Store))
	ids := map[string]string{}
	for _, c := range []struct{ lock, text string }{
		{"a/b", `"a/b"`}, {"a%2Fb", `"a%2Fb"`}, {"a%2fb", `"\u0061%2fb"`}, {"../x", `"..\/x"`}, {"/", `"/"`}, {"//", `"\/\/"`},
		{"s3://b/k?v=1#f", `"s3://b/k?v=1#f"`}, {"a b", `"a b"`}, {"a+b", `"a+b"`}, {" a ", `" a "`}, {"&amp;<b>", `"\u0026amp;<b>"`},
		{"\u00e9", `"\u00E9"`}, {"e\u0301", "\"e\u0301\""}, {"\U0001f512", `"\ud83d\udd12"`}, {"\U0001f513", "\"\U0001f513\""},
		{"\u2028", `"\u2028"`}, {"\ufeff", "\"\ufeff\""}, {"\ufffd", `"\ufffd"`}, {"\u200b", `"\u200B"`}, {"\\", `"\\"`}, {`"`, `"\""`},
		{"A", `"A"`}, {"a", `"\u0061"`}, {"\uff41", "\"\uff41\""}, {"ß", `"ß"`}, {"ss", `"ss"`}, {"İ", `"\u0130"`}, {"i̇", `"i\u0307"`},
		{strings.Repeat("x", 512), many("x", 512)}, {strings.Repeat("\u00e9", 256), many("\u00e9", 256)}, {strings.Repeat("\U0001f512", 128), many(`🔒`, 128)},
	} {
		same := func(a answer, status int, has string) (fields map[string]any) {
			t.Helper()
			if err := json.Unmarshal([]byte(a.body), &fields); err != nil || a.status != status || fields["lock"] != c.lock || !strings.Contains(a.body, has) {
				t.Fatalf("the lock %q (%s): got %d %s, want %d and %s", c.lock, c.text, a.status, a.body, status, has)
			}
			return fields
		}
		read := func() answer { return w.send("POST", "/v1/payments/read", `{"lock":`+c.text+`}`) }
		// Before it is granted it is free: it is none of the locks before it.
		same(read(), 200, `"token":0`)
		l := same(w.send("POST", "/v1/payments/acquire", `{"lock":`+c.text+`,"ttl_ms":60000}`), 201, `"token":`)
		name := fmt.Sprintf(`"lock":%s,"lease_id":%q,"token":%.0f`, c.text, l["lease_id"], l["token"])
		same(read(), 200, `"state":"held"`)
		same(w.send("POST", "/v1/payments/renew", `{`+name+`,"ttl_ms":61000}`), 200, `"ttl_ms":61000`)
		ids[c.lock] = name
	}
	for lock, name := range ids {
		if a := w.send("POST", "/v1/payments/release", "{"+name+"}"); a.status != http.StatusOK {
			t.Errorf("releasing %q: got %d %s", lock, a.status, a.Detail)
		}
	}
}

func TestAnUnknownPathIsNotFound(t *testing.T) {
	bubble(t, func(w wire, l lease.Lease) {
		for _, path := range []string{
			"", "/", "/v1", "/v1/", "/v1/payments", "/v1/payments/", "/v1/payments/locks?prefix=a", "/v1/payments/steal", "/v1/payments/lock", "/v1/payments/Acquire",
			"/healthz/", "/Healthz", "/v1/healthz", "/openapi.json", "/v1/openapi.yaml", "/favicon.ico", "/.env", "/../etc/passwd", "/%2e%2e/healthz", "//healthz", "/./healthz",
			"/v1/payments/acquire%00", "/*",
		} {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "BREW"} {
				w.refused(method, path, "", http.StatusNotFound, "not_found", "")
			}
		}
		w.unchanged(l, "the paths")
	})
}

func TestAWrongMethodIsToldTheRightOne(t *testing.T) {
	bubble(t, func(w wire, l lease.Lease) {
		all, _ := httplease.Routes()
		for _, route := range all {
			right, path, _ := strings.Cut(route, " ")
			path = strings.ReplaceAll(path, "{namespace}", "payments")
			if right == "HEAD" {
				continue // that of GET
			}
			allow := []string{right}
			if right == "GET" {
				allow = append(allow, "HEAD")
			}
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "BREW"} {
				if slices.Contains(allow, method) {
					continue
				}
				w.refused(method, path, "", http.StatusMethodNotAllowed, "method_not_allowed", "")
				if got := w.send(method, path, "").header.Get("Allow"); got != strings.Join(allow, ", ") {
					w.Errorf("%s %s: Allow is %q, want %q", method, path, got, allow)
				}
			}
		}
		w.unchanged(l, "the methods")
	})
}

// Whoever serves GET serves HEAD: monitors use it.
func TestHeadAnswersAsGetWithoutTheBody(t *testing.T) {
	srv := httptest.NewServer(&httplease.Handler{Service: new(memlease.Store), Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone})
	defer srv.Close()
	for path, status := range map[string]int{
		"/healthz": 200, "/v1/openapi.json": 200, "/v1/payments/read": 405, "/nothing": 404,
	} {
		a, err := srv.Client().Head(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != status || a.Header.Get("Content-Type") == "" {
			t.Errorf("HEAD %s: got %d, %v, want %d", path, a.StatusCode, a.Header, status)
		}
	}
}
