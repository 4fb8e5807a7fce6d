package fence_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// What several locks guard says which one a request is for, and does so by a
// context of its own. Without that it must not be sent unguarded.
func TestOnlyAHoldingOfOneLockIsSentAndNoneOnlyFromAContextWithout(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, strings.Join(r.Header.Values(fence.Header), " and "))
	}))
	defer server.Close()
	one := fence.Holding{Lock: "a/b", Token: 5}
	two := fence.Holding{Lock: "a/b", Token: 5, With: map[string]fence.Token{"a/c": 6}}
	for name, c := range map[string]struct {
		ctx  context.Context
		want string // the header, or nothing is sent
	}{
		"a holding":                 {fence.NewContext(t.Context(), one), `5;lock=%"a/b"`},
		"the last of two":           {fence.NewContext(fence.NewContext(t.Context(), two), one), `5;lock=%"a/b"`},
		"none at all":               {t.Context(), "older"},
		"nobody's":                  {fence.NewContext(t.Context(), fence.Holding{}), ""},
		"nobody's within another's": {fence.NewContext(fence.NewContext(t.Context(), one), fence.Holding{}), ""},
		"no token":                  {fence.NewContext(t.Context(), fence.Holding{Lock: "a/b"}), ""},
		"two locks":                 {fence.NewContext(t.Context(), two), ""},
	} {
		got = nil
		body := &closed{Reader: strings.NewReader("x")}
		r, err := http.NewRequestWithContext(c.ctx, http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(fence.Header, "older") // which a proxy would pass on
		a, err := (&http.Client{Transport: fence.Transport{}}).Do(r)
		if err == nil {
			_ = a.Body.Close()
		}
		if c.want == "" && (!errors.Is(err, fence.ErrInvalid) || got != nil) || c.want != "" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s: sent %q, error %v, want %q", name, got, err, c.want)
		}
		if c.want == "" && !body.was {
			t.Errorf("%s: the body was left open", name)
		}
		if r.Header.Get(fence.Header) != "older" {
			t.Errorf("%s: the caller's request was changed", name)
		}
	}
}

type closed struct {
	*strings.Reader
	was bool
}

func (c *closed) Close() error {
	c.was = true
	return nil
}
