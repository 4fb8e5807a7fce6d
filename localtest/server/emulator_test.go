package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	functions "github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// An emulator is AWS's own imitation of the Lambda service with our function in
// it: the independent witness for our gateway. It takes one event at a time.
type emulator struct {
	testing.TB
	url  string
	log  *log
	stop func() // may be called again
}

// emulate starts the function under the emulator.
func emulate(t testing.TB, bootstrap string, env []string) *emulator {
	t.Helper()
	rie := localtest.LambdaEmulatorForTest(t)
	e := &emulator{TB: t, log: new(log)}
	address, runtime := freeAddress(t), freeAddress(t)
	e.url = "http://" + address + "/2015-03-31/functions/function/invocations"
	cmd := exec.Command(rie, "--runtime-interface-emulator-address", address, "--runtime-api-address", runtime, bootstrap)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = e.log, e.log
	p, err := process.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	e.stop = func() {
		p.Kill()
		<-p.Exited()
	}
	t.Cleanup(e.stop)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := p.Ready(ctx, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			err = c.Close()
		}
		return err
	}); err != nil {
		t.Fatalf("%v\n%s", err, e.log)
	}
	return e
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

type answer struct {
	StatusCode int               `json:"statusCode"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// call sends what API Gateway sends for a request.
func (e *emulator) call(method, path, query, body string) (a answer) {
	e.Helper()
	event, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": method + " " + path, "rawPath": path, "rawQueryString": query,
		"headers": map[string]string{"content-type": "application/json", "host": "api.test"}, "body": body,
		"requestContext": map[string]any{
			"stage": "$default", "requestId": "test", "timeEpoch": time.Now().UnixMilli(),
			"http":       map[string]string{"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
			"authorizer": map[string]any{"iam": map[string]string{"userArn": "arn:aws:sts::123456789012:assumed-role/worker/i-1"}},
		},
	})
	if err != nil {
		e.Fatal(err)
	}
	r, err := http.Post(e.url, "application/json", bytes.NewReader(event))
	if err != nil {
		e.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(text, &a); err != nil || a.StatusCode == 0 {
		e.Fatalf("%s %s: got %s\n%s", method, path, text, e.log)
	}
	return a
}

// prepare compiles the function and makes a table for it.
func prepare(t testing.TB) (bootstrap string, env []string) {
	t.Helper()
	db := localtest.DynamoDBForTest(t)
	if err := dynamolease.CreateTable(t.Context(), dynamolease.NewClientFrom(db.Options()), "emulated"); err != nil {
		t.Fatal(err)
	}
	s := settings{getenv: func(string) string { return "" }}
	env, err := s.functionEnv(t.Context(), db, functions.API{Table: "emulated", Auth: functions.IAM, Metrics: "Pawl/local"})
	if err != nil {
		t.Fatal(err)
	}
	var b service
	t.Cleanup(func() { _ = b.close() }) // a temporary directory
	bootstrap, err = b.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return bootstrap, env
}

func TestTheFunctionRunsUnderTheEmulatorOfAWS(t *testing.T) {
	bootstrap, env := prepare(t)
	e := emulate(t, bootstrap, env)
	if a := e.call("GET", "/healthz", "", ""); a.StatusCode != http.StatusOK {
		t.Errorf("healthz: got %+v", a)
	}
	const lock = `{"lock":"orders/42","ttl_ms":60000,"holder":"worker-1"}`
	granted := e.call("POST", "/v1/payments/acquire", "", lock)
	var l struct {
		Token   int64  `json:"token"`
		LeaseID string `json:"lease_id"`
	}
	if err := json.Unmarshal([]byte(granted.Body), &l); err != nil || granted.StatusCode != http.StatusCreated {
		t.Fatalf("acquire: got %+v, %v", granted, err)
	}
	if held := e.call("POST", "/v1/payments/acquire", "", lock); held.StatusCode != http.StatusConflict || held.Headers["Retry-After"] != "1" {
		t.Errorf("acquire again: got %+v", held)
	}
	if state := e.call("POST", "/v1/payments/read", "", `{"lock":"orders/42"}`); !strings.Contains(state.Body, `"state":"held"`) {
		t.Errorf("read: got %+v", state)
	}
	body := fmt.Sprintf(`{"lock":"orders/42","token":%d,"lease_id":%q`, l.Token, l.LeaseID)
	if a := e.call("POST", "/v1/payments/renew", "", body+`,"ttl_ms":60000}`); a.StatusCode != http.StatusOK {
		t.Errorf("renew: got %+v", a)
	}
	if a := e.call("POST", "/v1/payments/release", "", body+`}`); a.StatusCode != http.StatusOK {
		t.Errorf("release: got %+v", a)
	}
	if want := `"principal":"arn:aws:sts::123456789012:assumed-role/worker"`; !strings.Contains(e.log.String(), want) {
		t.Errorf("the log has no %s:\n%s", want, e.log)
	}
	if strings.Contains(e.log.String(), l.LeaseID) {
		t.Errorf("the log has the lease id:\n%s", e.log)
	}
}
