package apigw

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzEvent(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no events in testdata", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Event
		if json.Unmarshal(data, &e) != nil {
			return
		}
		called := false
		res, err := Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			called = true
			same(t, &e, r)
			if strings.HasPrefix(r.URL.Path, "/") {
				http.NewServeMux().ServeHTTP(w, r) // the router takes whatever arrives
			}
		}))(t.Context(), e)
		_, notBase64 := base64.StdEncoding.DecodeString(e.Body)
		switch {
		case (err != nil) != (e.Version != "2.0"):
			t.Errorf("version %q: got error %v", e.Version, err)
		case err != nil:
		case called == (e.IsBase64Encoded && notBase64 != nil):
			t.Errorf("handler called: %t, but decoding the body gives %v", called, notBase64)
		case res.StatusCode == http.StatusInternalServerError:
			t.Error("a panic")
		}
	})
}

// same reports where r differs from what e carries.
func same(t *testing.T, e *Event, r *http.Request) {
	stage := "/" + e.RequestContext.Stage
	if p := r.URL.Path; !strings.HasSuffix(e.RawPath, p) && (p != "/" || e.RawPath != "" && e.RawPath != stage) {
		t.Errorf("stage %q, path %q: got path %q", stage, e.RawPath, p)
	}
	if r.URL.RawQuery != e.RawQueryString {
		t.Errorf("got query %q, want %q", r.URL.RawQuery, e.RawQueryString)
	}

	want := []byte(e.Body)
	if e.IsBase64Encoded {
		want, _ = base64.StdEncoding.DecodeString(e.Body) // or the handler is not called
	}
	if body, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(body, want) || r.ContentLength != int64(len(want)) {
		t.Errorf("got body %q, length %d, error %v, want %q", body, r.ContentLength, err, want)
	}

	names := map[string]int{} // the gateway sends each in one case only
	for k := range e.Headers {
		names[http.CanonicalHeaderKey(k)]++
	}
	for k, v := range e.Headers {
		k = http.CanonicalHeaderKey(k)
		switch got := r.Header[k]; {
		case names[k] > 1 || k == "Cookie" && len(e.Cookies) > 0:
		case k == "Host":
			if v != "" && r.Host != v {
				t.Errorf("got host %q, want %q", r.Host, v)
			}
		case len(got) != 1 || got[0] != v:
			t.Errorf("header %q: got %q, want %q", k, got, v)
		}
	}
	if len(e.Cookies) > 0 && r.Header.Get("Cookie") != strings.Join(e.Cookies, "; ") {
		t.Errorf("got cookies %q, want %q", r.Header.Get("Cookie"), e.Cookies)
	}
}
