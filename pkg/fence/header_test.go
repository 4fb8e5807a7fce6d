package fence_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

func TestTheHeaderIsAStructuredField(t *testing.T) {
	for lock, want := range map[string]string{
		"payments/orders/42":     `17;lock=%"payments/orders/42"`,
		"payments/é":             `17;lock=%"payments/%c3%a9"`,
		`payments/100% "safe"`:   `17;lock=%"payments/100%25 %22safe%22"`,
		"payments/a;lock=%\"b\"": `17;lock=%"payments/a;lock=%25%22b%22"`,
		`payments/back\slash`:    `17;lock=%"payments/back\slash"`,
	} {
		got, err := fence.FormatHeader(lock, 17)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", lock, got, err, want)
		}
		back, token, err := fence.ParseHeader(got)
		if err != nil || back != lock || token != 17 {
			t.Errorf("%q: read back as %q, %d, %v", lock, back, token, err)
		}
	}
}

func TestAHeaderThatNoLibraryWritesIsRefused(t *testing.T) {
	for _, value := range []string{
		"", "17", "17;", `17;lock="a/b"`, `17;lock=a`, `17;lock=%"a/b`, `17;lock=%""`, `17;lock=%"a/b";x`, `017;lock=%"a/b"`, `+17;lock=%"a/b"`,
		`-17;lock=%"a/b"`, `0;lock=%"a/b"`, `1000000000000000;lock=%"a/b"`, `17.0;lock=%"a/b"`, ` 17;lock=%"a/b"`, `17; lock=%"a/b"`,
		`17;lock=%"a/%C3%A9"`, `17;lock=%"a/%62"`, `17;lock=%"a/%ff"`, `17;lock=%"a/%c"`, `17;lock=%"a/%"`, `17;lock=%"a/é"`, `17, 18;lock=%"a/b"`, `17;lock=%"a%00b"`, `17;lock=%"a%c2%85b"`,
		`17;lock=%"` + strings.Repeat("x", fence.MaxLock+1) + `"`,
	} {
		if lock, token, err := fence.ParseHeader(value); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%q was read as %q, %d, %v", value, lock, token, err)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(`17;lock=%"payments/%c3%a9"`)
	f.Add(`999999999999999;lock=%"a/b"`)
	f.Fuzz(func(t *testing.T, value string) {
		lock, token, err := fence.ParseHeader(value)
		if err != nil {
			return
		}
		if again, err := fence.FormatHeader(lock, token); err != nil || again != value {
			t.Errorf("%q was read, and written again as %q, %v", value, again, err)
		}
	})
}

func BenchmarkParseHeader(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := fence.ParseHeader(`1795999458837;lock=%"payments/orders/42"`); err != nil {
			b.Fatal(err)
		}
	}
}

func TestATokenTravelsOverHTTPAndAStaleWriteComesBack(t *testing.T) {
	stale := &fence.StaleError{Lock: "payments/é", Token: 17, Seen: 18, Resource: "orders, row 42"}
	other := &fence.OtherLockError{Lock: "payments/é", Bound: "payments/e", Resource: "orders, row 42", NotApplied: true}
	server := httptest.NewServer(fence.Handler{Required: true, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, token := fence.FromContext(r.Context())
		if token == 17 && lock == "payments/é" {
			if !fence.WriteRefusal(w, stale) {
				t.Error("a stale error was not written")
			}
			return
		}
		if token == 19 {
			fence.WriteRefusal(w, other)
			return
		}
		if fence.WriteRefusal(w, io.EOF) {
			t.Error("another error was written as a stale one")
		}
	})})
	defer server.Close()
	get := func(lock string, token fence.Token, client *http.Client) (*http.Response, error) {
		r, err := http.NewRequestWithContext(fence.NewContext(t.Context(), lock, token), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		return client.Do(r)
	}
	fenced := &http.Client{Transport: fence.Transport{}}
	a, err := get("payments/é", 17, fenced)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var got *fence.StaleError
	if err := fence.ReadRefusal(a); !errors.As(err, &got) || *got != *stale {
		t.Errorf("got %v, want %v", err, stale)
	}
	b, err := get("payments/é", 19, fenced)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Body.Close()
	var bound *fence.OtherLockError
	if err := fence.ReadRefusal(b); !errors.As(err, &bound) || *bound != *other {
		t.Errorf("got %v, want %v", err, other)
	}
	if a, err := get("payments/é", 18, fenced); err != nil || a.StatusCode != http.StatusOK || fence.ReadRefusal(a) != nil {
		t.Errorf("a write that is not stale: got %v, %v", a, err)
	}
	if a, err := get("payments/é", 0, fenced); err != nil || a.StatusCode != http.StatusPreconditionRequired {
		t.Errorf("without a token: got %v, %v", a, err)
	}
	if _, err := get("payments/é", fence.Max+1, fenced); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("a token that is none: got %v, want ErrInvalid", err)
	}
	for _, values := range [][]string{{"nonsense"}, {`17;lock=%"a/b"`, `17;lock=%"a/b"`}} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		r.Header[fence.Header] = values
		if a, err := http.DefaultClient.Do(r); err != nil || a.StatusCode != http.StatusBadRequest || fence.ReadRefusal(a) != nil {
			t.Errorf("%q: got %v, %v, want 400", values, a, err)
		}
	}
}
