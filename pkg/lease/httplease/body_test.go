package httplease_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/pawl-lock/pawl/pkg/lease"
)

func TestAMemberThatIsUnknownOrGivenTwiceIsNamed(t *testing.T) {
	everyRequest(t, func(w wire, l lease.Lease, q request) {
		w.unchecked()
		refuse := func(body, field string) {
			w.Helper()
			w.refused("POST", q.path(), body, http.StatusBadRequest, "invalid", field)
			w.unchanged(l, body)
		}
		whole := strings.TrimSuffix(q.body("", ""), "}")
		for _, m := range q.members {
			for _, other := range []string{strings.ToUpper(m.name), strings.ToUpper(m.name[:1]) + m.name[1:], m.name + " ", strings.ReplaceAll(m.name, "_", "") + "s"} {
				refuse(fmt.Sprintf(`%s,%q:%s}`, whole, other, m.value), other)
				// Instead of the right one it is not taken for it either.
				refuse(strings.Replace(whole+"}", `"`+m.name+`":`, `"`+other+`":`, 1), other)
			}
			refuse(fmt.Sprintf(`%s,%q:%s}`, whole, m.name, m.value), m.name)
			refuse(fmt.Sprintf(`{%q:%s,%s}`, m.name, m.good[0], whole[1:]), m.name)
			refuse(fmt.Sprintf(`%s,"\u%04x%s":%s}`, whole, m.name[0], m.name[1:], m.value), m.name) // the same, escaped
		}
		for _, unknown := range []string{"extra", "namespace", "fence", "é", "a/b", "a~b", "__proto__"} {
			refuse(fmt.Sprintf(`%s,%q:1}`, whole, unknown), unknown)
			refuse(fmt.Sprintf(`%s,%q:{"lock":null}}`, whole, unknown), unknown)
		}
		for _, unknown := range requests(l) {
			for _, m := range unknown.members {
				if !strings.Contains(whole, `"`+m.name+`":`) {
					refuse(fmt.Sprintf(`%s,%q:%s}`, whole, m.name, m.value), m.name)
				}
			}
		}
	})
}

func TestABodyThatIsNotOneObjectIsRefusedAsAWhole(t *testing.T) {
	everyRequest(t, func(w wire, l lease.Lease, q request) {
		if q.action != "acquire" {
			w.unchecked()
		}
		good := q.body("", "")
		var wide strings.Builder // UTF-16
		for _, c := range utf16.Encode([]rune("\ufeff" + good)) {
			wide.Write([]byte{byte(c >> 8), byte(c)})
		}
		for _, body := range []string{
			"", " ", "\x00", "\xff", "null", "true", "1", `"lock"`, "[]", "[" + good + "]", "[null]",
			good + good, good + " " + good, good + "\n{}", good + "x", good + "}", good + ",", good + "\x00", good + "null",
			good[:len(good)-1], good[:1], good[1:], "{" + good + "}", "\ufeff" + good, wide.String(),
			strings.ReplaceAll(good, `"`, "'"), strings.TrimSuffix(good, "}") + ",}", "{," + good[1:],
			"/**/" + good, good + "//", "lock=orders%2F43&ttl_ms=60000",
			"{\"\xff\":1," + good[1:], `{"\ud800":1,` + good[1:], `{1:1,` + good[1:], `{null:1,` + good[1:],
			strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 3_000)[:15_000],
		} {
			field := ""
			if strings.HasPrefix(body, `{"a":{`) {
				field = "a"
			}
			w.refused("POST", q.path(), body, http.StatusBadRequest, "invalid", field)
			w.unchanged(l, body)
		}
	})
}

func TestABodyMayHave16KiBAndNoMore(t *testing.T) {
	const most = 16 << 10
	everyRequest(t, func(w wire, l lease.Lease, q request) {
		good := q.body("", "")
		large := good + strings.Repeat(" ", most-len(good))
		for _, body := range []string{large + " ", " " + large, large + good, strings.Repeat(" ", most) + good, strings.Repeat("x", 1<<20)} {
			w.refused("POST", q.path(), body, http.StatusRequestEntityTooLarge, "too_large", "")
			w.unchanged(l, body)
		}
		long := fmt.Sprintf(`%s,"extra":"`, strings.TrimSuffix(good, "}"))
		long += strings.Repeat("x", most-len(long)-2) + `"}`
		w.refused("POST", q.path(), long, http.StatusBadRequest, "invalid", "extra")
		w.unchanged(l, long)
		if a := w.send("POST", q.path(), large); a.status/100 != 2 {
			w.Errorf("%d bytes: got %d %s (%s)", len(large), a.status, a.Code, a.Detail)
		}
	})
}

// The client does not repair a text on the way out either: what the service
// would be asked for is another lock.
func TestAClientRefusesToSendTextThatIsNotUTF8(t *testing.T) {
	everyClientCall(t, func(t *testing.T, call clientCall) {
		w, l := held(t)
		for _, broken := range []string{"\xff", "a\xff", "\xed\xa0\x80", "a\xc0\x80b"} {
			for _, field := range call.texts {
				_, err := call.do(t.Context(), w.c, l, map[string]string{field: broken})
				wantInvalid(t, err, field)
			}
		}
		w.unchanged(l, call.name)
	})
}
