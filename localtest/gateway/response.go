package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// response is what the client gets.
type response struct {
	status int
	header http.Header
	body   []byte
}

// parseResponse reads what a function returned. An object with a statusCode is
// a response; anything else, which need not even be JSON, is the body of a 200
// of type application/json. Only a JSON string is unquoted first.
func parseResponse(payload []byte) (*response, error) {
	var has struct {
		StatusCode json.RawMessage `json:"statusCode"`
	}
	if err := json.Unmarshal(payload, &has); err != nil || has.StatusCode == nil {
		var text string
		if json.Unmarshal(payload, &text) == nil && payload[0] == '"' {
			payload = []byte(text)
		}
		return &response{http.StatusOK, http.Header{"Content-Type": {"application/json"}}, payload}, nil
	}
	var full struct {
		StatusCode      int               `json:"statusCode"`
		Headers         map[string]string `json:"headers"`
		Cookies         []string          `json:"cookies"`
		Body            string            `json:"body"`
		IsBase64Encoded bool              `json:"isBase64Encoded"`
	}
	if err := json.Unmarshal(payload, &full); err != nil {
		return nil, fmt.Errorf("gateway: function's response: %w", err)
	}
	if full.StatusCode < 200 || full.StatusCode > 599 {
		return nil, fmt.Errorf("gateway: function's response: status %d", full.StatusCode)
	}
	resp := &response{full.StatusCode, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, []byte(full.Body)}
	for name, value := range full.Headers {
		resp.header.Set(name, value)
	}
	for _, cookie := range full.Cookies {
		resp.header.Add("Set-Cookie", cookie)
	}
	if full.IsBase64Encoded {
		var err error
		if resp.body, err = base64.StdEncoding.DecodeString(full.Body); err != nil {
			return nil, fmt.Errorf("gateway: function's response: %w", err)
		}
	}
	return resp, nil
}

func (resp *response) write(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range resp.header {
		h[name] = values
	}
	// These are the gateway's to say, whatever the function said.
	h.Del("Connection")
	h.Del("Transfer-Encoding")
	h.Set("Content-Length", strconv.Itoa(len(resp.body)))
	w.WriteHeader(resp.status)
	_, _ = w.Write(resp.body) // the client has gone, or the status allows no body
}
