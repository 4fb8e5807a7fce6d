package apigw

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// A writer gathers a response by the rules of net/http.
type writer struct {
	header http.Header // what the handler may still change
	body   strings.Builder

	// Fixed by WriteHeader; res.StatusCode is 0 until then.
	res   events.APIGatewayV2HTTPResponse
	typed bool // the handler decided on Content-Type, if only on none
}

func (w *writer) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// oneLine keeps a value from starting another header.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func (w *writer) WriteHeader(status int) {
	if w.res.StatusCode != 0 {
		return
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("apigw: invalid WriteHeader code %v", status))
	}
	if status < 200 {
		return // informational: the real one follows
	}
	w.res.StatusCode = status
	w.res.Headers = make(map[string]string, len(w.header)+1)
	_, w.typed = w.header["Content-Type"]
	for k, values := range w.header {
		switch {
		case len(values) == 0:
		case strings.EqualFold(k, "Set-Cookie"): // cannot be joined: cookies have commas in their dates
			for _, v := range values {
				w.res.Cookies = append(w.res.Cookies, oneLine.Replace(v))
			}
		default:
			w.res.Headers[k] = oneLine.Replace(strings.Join(values, ", "))
		}
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.res.StatusCode == http.StatusNoContent || w.res.StatusCode == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	return w.body.Write(p)
}

// response returns what was written, as the answer to a HEAD request if head.
func (w *writer) response(head bool) events.APIGatewayV2HTTPResponse {
	w.WriteHeader(http.StatusOK)
	body := w.body.String()
	coded := w.res.Headers["Content-Encoding"] != ""
	if body != "" && !w.typed && !coded {
		w.res.Headers["Content-Type"] = http.DetectContentType([]byte(body))
	}
	switch {
	case head:
	case coded || !utf8.ValidString(body):
		w.res.Body = base64.StdEncoding.EncodeToString([]byte(body))
		w.res.IsBase64Encoded = true
	default:
		w.res.Body = body
	}
	return w.res
}
