package apigw

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// get returns h's response to a request with that method.
func get(t *testing.T, method string, h http.HandlerFunc) events.APIGatewayV2HTTPResponse {
	t.Helper()
	e := Event{Version: "2.0", RawPath: "/"}
	e.RequestContext.HTTP.Method = method
	res, err := Handler(h)(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// body returns what the gateway sends on for res.
func body(t *testing.T, res events.APIGatewayV2HTTPResponse) string {
	t.Helper()
	if !res.IsBase64Encoded {
		return res.Body
	}
	b, err := base64.StdEncoding.DecodeString(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestResponsesAreThoseOfNetHTTP(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"nothing written": func(http.ResponseWriter, *http.Request) {},
		"headers only":    func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-A", "1") },
		"the first WriteHeader wins": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			w.WriteHeader(http.StatusOK)
		},
		"Write settles the status": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "done")
			w.WriteHeader(http.StatusConflict)
		},
		"an informational status is not the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("X-A", "2")
			w.WriteHeader(http.StatusCreated)
		},
		"headers are settled by WriteHeader": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1")
			w.Header().Add("Set-Cookie", "a=1")
			w.WriteHeader(http.StatusOK)
			w.Header().Set("X-A", "2")
			w.Header().Set("X-B", "2")
			w.Header()["Set-Cookie"][0] = "a=2"
		},
		"headers are settled by Write": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<html>")
			w.Header().Set("Content-Type", "text/plain")
		},
		"204 has no body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "body"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("204: got error %v, want ErrBodyNotAllowed", err)
			}
		},
		"304 has no body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotModified)
			if _, err := io.WriteString(w, "body"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("304: got error %v, want ErrBodyNotAllowed", err)
			}
		},
		"HTML is recognised": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<!DOCTYPE html>") },
		"binary is recognised": func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("\x89PNG\x0d\x0a\x1a\x0a\xff"))
		},
		"a long body is recognised by its start": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("a", 511)+"\x00")
		},
		"a long body is not searched": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("a", 512)+"\x00")
		},
		"a type that was set stays": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "<html>")
		},
		"no type is a choice": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<html>")
		},
		"an encoded body is not looked at": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "<html>")
		},
		"repeated headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Accept")
			w.Header().Add("Vary", "Origin")
		},
		"cookies": func(w http.ResponseWriter, _ *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1", MaxAge: 5})
			http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
		},
		"a value stays in its line": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1\r\nX-B: 2")
			w.Header().Set("Set-Cookie", "a=1\nSet-Cookie: b=2")
		},
		"an error": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
	}
	for name, h := range handlers {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			t.Run(method+" "+name, func(t *testing.T) {
				srv := httptest.NewServer(h)
				defer srv.Close()
				r, err := http.NewRequestWithContext(t.Context(), method, srv.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Accept-Encoding", "identity")
				want, err := srv.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer want.Body.Close()
				wantBody, err := io.ReadAll(want.Body)
				if err != nil {
					t.Fatal(err)
				}
				cookies := want.Header["Set-Cookie"]
				wantHeaders := map[string]string{}
				for k, v := range want.Header {
					switch k {
					case "Date", "Content-Length", "Set-Cookie": // the gateway's to add, and the cookies
					default:
						wantHeaders[k] = strings.Join(v, ", ")
					}
				}

				got := get(t, method, h)
				if got.StatusCode != want.StatusCode {
					t.Errorf("got status %d, want %d", got.StatusCode, want.StatusCode)
				}
				if !reflect.DeepEqual(got.Headers, wantHeaders) {
					t.Errorf("got headers %q, want %q", got.Headers, wantHeaders)
				}
				if !reflect.DeepEqual(got.Cookies, cookies) {
					t.Errorf("got cookies %q, want %q", got.Cookies, cookies)
				}
				if b := body(t, got); b != string(wantBody) {
					t.Errorf("got body %q, want %q", b, wantBody)
				}
			})
		}
	}
}

func TestOnlyTextTravelsUnencoded(t *testing.T) {
	for name, c := range map[string]struct {
		coding, body string
		encoded      bool
	}{
		"text":            {"", "héllo", false},
		"empty":           {"", "", false},
		"not UTF-8":       {"", "h\xe9llo", true},
		"encoded content": {"br", "hello", true},
	} {
		res := get(t, http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			if c.coding != "" {
				w.Header().Set("Content-Encoding", c.coding)
			}
			io.WriteString(w, c.body)
		})
		if res.IsBase64Encoded != c.encoded || body(t, res) != c.body {
			t.Errorf("%s: got %q (base64: %t), want %q (base64: %t)", name, res.Body, res.IsBase64Encoded, c.body, c.encoded)
		}
	}
}
