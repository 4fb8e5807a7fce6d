package localtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A fault changes the nth answer to an update whose condition failed; the first
// one is for the old item, the rest are for the race.
type fault func(n int64, r *http.Response, body map[string]any)

// behind puts a fault in front of an engine and names it as the user's.
func behind(t *testing.T, d *DynamoDB, f fault) (endpoint string) {
	t.Helper()
	target, err := url.Parse(d.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	var failures atomic.Int64
	proxy.ModifyResponse = func(r *http.Response) error {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		var body map[string]any
		if err := json.Unmarshal(b, &body); err != nil {
			return err
		}
		if kind, _ := body["__type"].(string); strings.HasSuffix(kind, "#ConditionalCheckFailedException") {
			f(failures.Add(1), r, body)
		}
		if b, err = json.Marshal(body); err != nil {
			return err
		}
		r.Header.Del("X-Amz-Crc32") // it is not the sum of what we send
		r.Header.Set("Content-Length", strconv.Itoa(len(b)))
		r.ContentLength, r.Body = int64(len(b)), io.NopCloser(bytes.NewReader(b))
		return nil
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	t.Setenv("DYNAMODB_ENDPOINT", srv.URL)
	return srv.URL
}

// succeed turns a failure into the answer to an update that was made.
func succeed(r *http.Response, body map[string]any) {
	r.StatusCode = http.StatusOK
	clear(body)
}

func TestStartDynamoDBRefusesAnEngineThatCannotKeepALock(t *testing.T) {
	for name, c := range map[string]struct {
		fault fault
		want  string
	}{
		"without the old item": {
			func(_ int64, _ *http.Response, body map[string]any) { delete(body, "Item") },
			"ReturnValuesOnConditionCheckFailure",
		},
		"that ignores conditions": {
			func(_ int64, r *http.Response, body map[string]any) { succeed(r, body) },
			"an update was made although its condition was false",
		},
		"that lets two win": {
			func(n int64, r *http.Response, body map[string]any) {
				if n == 2 {
					succeed(r, body)
				}
			},
			"2 of 64 conditional updates at the same time succeeded, not 1",
		},
		"whose old item is stale": {
			func(n int64, _ *http.Response, body map[string]any) {
				if n == 3 {
					body["Item"].(map[string]any)["winner"] = map[string]any{"S": "first"}
				}
			},
			"contradict each other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			newMachine(t, "dynoxide")
			d := open(t, "")
			behind(t, d, c.fault)
			refused(t, c.want)
			if left := tables(t, d); len(left) > 0 {
				t.Errorf("left behind tables %q", left)
			}
		})
	}
}

func TestProbePassesThroughAProxyWithoutAFault(t *testing.T) {
	newMachine(t, "dynoxide")
	d := open(t, "")
	behind(t, d, func(int64, *http.Response, map[string]any) {})
	open(t, "")
}

func TestProbeCountsAWinWhoseAnswerWasLost(t *testing.T) {
	newMachine(t, "dynoxide")
	d := open(t, "")
	target, err := url.Parse(d.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	var updates atomic.Int64
	proxy.ModifyResponse = func(r *http.Response) error {
		// The first update that succeeds is the winner's.
		if r.Request.Header.Get("X-Amz-Target") == "DynamoDB_20120810.UpdateItem" && r.StatusCode == http.StatusOK && updates.Add(1) == 1 {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusInternalServerError) }
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	o := d.Options()
	o.BaseEndpoint = &srv.URL
	if err := probe(t.Context(), dynamodb.New(o)); err != nil {
		t.Error(err)
	}
	if got := updates.Load(); got != 1 {
		t.Errorf("%d updates succeeded, want 1", got)
	}
}

func TestProbeDeletesItsTable(t *testing.T) {
	newMachine(t, "dynoxide")
	d := open(t, "")
	if err := probe(t.Context(), dynamodb.New(d.Options())); err != nil {
		t.Fatal(err)
	}
	if left := tables(t, d); len(left) > 0 {
		t.Errorf("left behind tables %q", left)
	}
}
