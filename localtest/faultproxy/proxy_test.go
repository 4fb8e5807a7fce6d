package faultproxy

import (
	"bytes"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// newEngine returns a proxy in front of an engine that executes everything and
// counts it.
func newEngine(t *testing.T) (p *Proxy, executed *atomic.Int64) {
	t.Helper()
	executed = new(atomic.Int64)
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		answer := []byte(strconv.FormatInt(executed.Add(1), 10) + " of " + string(body) + r.Header.Get("X-Amz-Target"))
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(answer)), 10))
		_, _ = w.Write(answer) // the proxy has not gone
	}))
	t.Cleanup(engine.Close)
	return Start(t, engine.URL), executed
}

// send sends a request as the SDK does and gives up after a while.
func send(t *testing.T, p *Proxy, operation string) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL, strings.NewReader("body "))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	c := http.Client{Timeout: 200 * time.Millisecond, Transport: new(http.Transport)}
	defer c.CloseIdleConnections()
	resp, err := c.Do(r)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, body, err}
}

func TestEachFaultDoesWhatItIsCalled(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    Fault
		executed int64
		answer   string // empty: none
	}{
		{"pass", Pass, 1, "1 of body DynamoDB_20120810.UpdateItem"},
		{"drop", Drop, 0, ""},
		{"reset", Reset, 0, ""},
		{"hang", Hang, 0, ""},
		{"lose the answer", After(Drop), 1, ""},
		{"twice", Twice, 2, " of body DynamoDB_20120810.UpdateItem"},
		{"truncate", Truncate, 1, ""},
		{"corrupt", Corrupt, 1, "0 of body DynamoDB_20120810.UpdateItem"},
		{"refuse", Refuse(400, "ThrottlingException"), 0, `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"injected"}`},
		{"say after", After(Say(503, "text/html", "<html>")), 1, "<html>"},
		{"copy", new(Late).Copy, 1, "1 of body DynamoDB_20120810.UpdateItem"},
		{"delay", new(Late).Delay, 0, ""},
		{"never", Random(1, Chance{0, Drop}), 1, "1 of body DynamoDB_20120810.UpdateItem"},
		{"always", Random(1, Chance{1, Drop}), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, executed := newEngine(t)
			p.Next("UpdateItem", c.fault)
			a := send(t, p, "UpdateItem")
			if (a.Err == nil) != (c.answer != "") || a.Err == nil && !strings.HasSuffix(string(a.Body), c.answer) {
				t.Errorf("got answer %q, error %v, want %q", a.Body, a.Err, c.answer)
			}
			if n := executed.Load(); n != c.executed || int64(p.Done("UpdateItem")) != n {
				t.Errorf("executed %d times and counted %d, want %d", n, p.Done("UpdateItem"), c.executed)
			}
			sum := a.Header.Get("X-Amz-Crc32")
			if right := sum == strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.Body)), 10); sum != "" && right == (c.name == "corrupt") {
				t.Errorf("got checksum %s of %q, right: %v", sum, a.Body, right)
			}
		})
	}
}

func TestFaultsMeetTheOperationsTheyAreFor(t *testing.T) {
	p, _ := newEngine(t)
	p.Every("UpdateItem", Drop)
	p.Next("UpdateItem", Pass, Refuse(400, "ValidationException"))
	for i, want := range []struct{ operation, name string }{
		{"GetItem", ""}, {"UpdateItem", ""}, {"UpdateItem", "ValidationException"}, {"UpdateItem", "lost"}, {"GetItem", ""},
	} {
		a := send(t, p, want.operation)
		got := a.Name()
		if a.Err != nil {
			got = "lost"
		}
		if got != want.name {
			t.Errorf("request %d, %s: got %q, want %q", i, want.operation, got, want.name)
		}
	}
	if n := len(p.Seen("UpdateItem")); n != 3 {
		t.Errorf("saw %d updates, want 3", n)
	}
}

func TestWhatIsLateArrivesWhenItIsToldTo(t *testing.T) {
	p, executed := newEngine(t)
	var late Late
	p.Next("UpdateItem", late.Copy, late.Delay)
	send(t, p, "UpdateItem")
	send(t, p, "UpdateItem")
	if n := executed.Load(); n != 1 {
		t.Errorf("executed %d times before, want 1", n)
	}
	answers := late.Arrive()
	if n := executed.Load(); n != 3 || len(answers) != 2 || !bytes.HasPrefix(answers[1].Body, []byte("3 of body")) {
		t.Errorf("executed %d times, with answers %v", n, answers)
	}
	if again := late.Arrive(); len(again) != 0 {
		t.Errorf("arrived again: %v", again)
	}
	p.Next("UpdateItem", late.Copy, late.Overtaken)
	send(t, p, "UpdateItem")
	if a := send(t, p, "UpdateItem"); !bytes.HasPrefix(a.Body, []byte("6 of")) {
		t.Errorf("got %q, want the sixth after the copy of the fourth", a.Body)
	}
}
