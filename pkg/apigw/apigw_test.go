package apigw

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

// logged returns what f logs.
func logged(t *testing.T, f func()) string {
	t.Helper()
	var b bytes.Buffer
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	f()
	return b.String()
}

func TestAPanicIsLoggedAndNotTold(t *testing.T) {
	const secret = "table accounts is gone"
	for name, c := range map[string]struct {
		h      http.HandlerFunc
		reason string
	}{
		"text":  {func(http.ResponseWriter, *http.Request) { panic(secret) }, secret},
		"error": {func(http.ResponseWriter, *http.Request) { panic(errors.New(secret)) }, secret},
		"in the middle of an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Secret", secret)
			io.WriteString(w, secret)
			panic(http.ErrAbortHandler)
		}, http.ErrAbortHandler.Error()},
		"no such status":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(99) }, "invalid WriteHeader code 99"},
		"nor this status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(1000) }, "invalid WriteHeader code 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			var res events.APIGatewayV2HTTPResponse
			log := logged(t, func() { res = get(t, http.MethodPost, c.h) })
			want := events.APIGatewayV2HTTPResponse{
				StatusCode: http.StatusInternalServerError,
				Headers:    map[string]string{"Content-Type": "application/problem+json"},
				Body:       panicked,
			}
			if !reflect.DeepEqual(res, want) {
				t.Errorf("got %+v, want %+v", res, want)
			}
			for _, part := range []string{"apigw: handler panicked", c.reason, "response_test.go", "method=POST"} {
				if !strings.Contains(log, part) {
					t.Errorf("the log lacks %q: %s", part, log)
				}
			}
		})
	}
}

func TestAPanicUnderHEADHasNoBody(t *testing.T) {
	logged(t, func() {
		res := get(t, http.MethodHead, func(http.ResponseWriter, *http.Request) { panic("x") })
		if res.StatusCode != http.StatusInternalServerError || res.Body != "" {
			t.Errorf("got %+v, want a bare 500", res)
		}
	})
}

func TestABodyThatIsNotBase64IsRefused(t *testing.T) {
	res, err := Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the handler was called")
	}))(t.Context(), Event{Version: "2.0", Body: "a", IsBase64Encoded: true})
	want := events.APIGatewayV2HTTPResponse{
		StatusCode: http.StatusBadRequest,
		Headers:    map[string]string{"Content-Type": "application/problem+json"},
		Body:       badBody,
	}
	if err != nil || !reflect.DeepEqual(res, want) {
		t.Errorf("got %+v, %v, want %+v", res, err, want)
	}
}

func TestProblemsAreValidAndMatchTheirStatus(t *testing.T) {
	for status, text := range map[int]string{400: badBody, 500: panicked} {
		var p struct {
			Type, Title, Detail, Code string
			Status                    int
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&p); err != nil || p.Status != status || p.Title != http.StatusText(status) || p.Detail == "" || p.Code == "" {
			t.Errorf("got %+v, error %v, want a problem with status %d", p, err, status)
		}
	}
}

func TestTheRuntimeWritesWhatTheGatewayReads(t *testing.T) {
	out, err := lambda.NewHandler(Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "a=1")
		w.WriteHeader(http.StatusCreated)
		w.Write([]byte{0xff})
	}))).Invoke(t.Context(), []byte(`{"version":"2.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"statusCode":        201.0,
		"headers":           map[string]any{"Content-Type": "text/plain; charset=utf-8"},
		"cookies":           []any{"a=1"},
		"body":              "/w==",
		"isBase64Encoded":   true,
		"multiValueHeaders": nil, // of format 1.0: the gateway ignores it
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOtherPayloadFormatsAreAnError(t *testing.T) {
	h := lambda.NewHandler(Handler(http.NotFoundHandler()))
	for event, want := range map[string]string{
		`{"version":"1.0","path":"/"}`: `apigw: event has payload format version "1.0": want 2.0`,
		`{"key1":"value1"}`:            `apigw: event has payload format version "": want 2.0`,
		`null`:                         `apigw: event has payload format version "": want 2.0`,
	} {
		if _, err := h.Invoke(t.Context(), []byte(event)); err == nil || err.Error() != want {
			t.Errorf("%s: got error %v, want %s", event, err, want)
		}
	}
}
