package infra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/infra/routes"
	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/gateway"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// compiled builds a function as it is deployed, but for this machine.
var compiled = func() func(testing.TB, string) string {
	var mu sync.Mutex
	built := make(map[string]string)
	return func(t testing.TB, name string) string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if built[name] == "" {
			file := filepath.Join(filepath.Dir(code), name, "bootstrap")
			cmd := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", file, "github.com/pawl-lock/pawl/functions/"+name)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			built[name] = file
		}
		return built[name]
	}
}()

// A deployed is an API stack on this machine: the functions run under exactly the
// environment that its template has, and what AWS would write of them, and they
// of themselves, is measured.
type deployed struct {
	cloudWatch
	template template
	url      string

	mu    sync.Mutex
	lines bytes.Buffer
	all   []map[string]any // the lines that were read
}

// An environment is what is not in a template: where DynamoDB is, and the table.
type environment struct{ endpoint, table string }

func newTable(t testing.TB) environment {
	t.Helper()
	db := localtest.DynamoDBForTest(t)
	e := environment{db.Endpoint, "table-" + lease.NewID()}
	if err := dynamolease.CreateTable(t.Context(), dynamolease.NewClientFrom(db.Options()), e.table); err != nil {
		t.Fatal(err)
	}
	return e
}

// variables returns the environment of a function in a template, with a table
// of this machine in place of the one that only AWS knows.
func variables(t testing.TB, f props, e environment) (env []string) {
	t.Helper()
	for name, value := range f.at("Environment", "Variables").(map[string]any) {
		if name == settings.Table {
			value = e.table
		}
		env = append(env, name+"="+value.(string))
	}
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+e.endpoint, "AWS_ACCESS_KEY_ID=pawl", "AWS_SECRET_ACCESS_KEY=pawl")
}

// deploy runs an API stack. change may change what the gateway does.
func deploy(t *testing.T, x template, e environment, change func(*routes.Route)) *deployed {
	t.Helper()
	d := &deployed{cloudWatch: cloudWatch{TB: t}, template: x}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	all, err := routes.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	lambdas := make(map[string]*gateway.Lambda)
	g := &gateway.Gateway{Authorizer: gateway.Anyone, Log: slog.New(&access{Handler: slog.DiscardHandler, to: d})}
	for _, r := range all {
		if change != nil {
			change(&r)
		}
		l := lambdas[r.ID]
		if l == nil {
			l = &gateway.Lambda{
				Bootstrap: compiled(t, "api"), Env: variables(t, x.of("AWS::Lambda::Function")[r.ID], e),
				Concurrency: r.Concurrency, Timeout: r.Timeout, Log: d,
			}
			lambdas[r.ID] = l
			t.Cleanup(func() { _ = l.Close() })
		}
		g.Routes = append(g.Routes, gateway.Route{Key: r.Key, Public: r.Public, Lambda: l, Throttle: &gateway.Throttle{Rate: r.Rate, Burst: r.Burst}})
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	d.url = server.URL
	d.period()
	return d
}

// Write implements [io.Writer], for the logs of the functions.
func (d *deployed) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lines.Write(text)
}

// An access is the gateway's own log: from it come the metrics that AWS writes of
// the gateway and of Lambda.
type access struct {
	slog.Handler
	to *deployed
}

// Enabled implements [slog.Handler].
func (a *access) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (a *access) Handle(_ context.Context, r slog.Record) error {
	d := a.to
	d.mu.Lock()
	defer d.mu.Unlock()
	status, integration, path := int64(0), "200", ""
	var failure error
	r.Attrs(func(attr slog.Attr) bool {
		switch attr.Key {
		case "status":
			status = attr.Value.Int64()
		case "path":
			path = attr.Value.String()
		case "error":
			failure, _ = attr.Value.Any().(error)
		}
		return true
	})
	id, _ := d.template.one(d, "AWS::ApiGatewayV2::Api")
	count := func(name string, is bool) {
		if is {
			d.put(metricKey("AWS/ApiGateway", name, "ApiId=<"+id+">"), 1)
		}
	}
	count("Count", true)
	count("4xx", status/100 == 4)
	count("5xx", status/100 == 5)
	for function := range d.template.of("AWS::Lambda::Function") {
		if !strings.HasPrefix(function, "Lock"+behind(path)) {
			continue
		}
		var failed *gateway.FunctionError
		switch {
		case errors.Is(failure, gateway.ErrThrottled):
			d.put(metricKey("AWS/Lambda", "Throttles", "FunctionName=<"+function+">"), 1)
		case errors.As(failure, &failed) || errors.Is(failure, gateway.ErrTimeout):
			d.put(metricKey("AWS/Lambda", "Errors", "FunctionName=<"+function+">"), 1)
		}
	}
	if failure != nil {
		integration = "-"
	}
	_, filter := d.template.one(d, "AWS::Logs::MetricFilter")
	d.accessed(filter, map[string]string{"status": fmt.Sprint(status), "integration_status": integration})
	return nil
}

// call makes a call and returns its answer.
func (d *deployed) call(action, body string) (status int, answer map[string]any) {
	d.Helper()
	started := time.Now()
	r, err := http.Post(d.url+"/v1/payments/"+action, "application/json", strings.NewReader(body))
	if err != nil {
		d.Error(err)
		return 0, nil
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		d.Errorf("%v: %s", err, text)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for function := range d.template.of("AWS::Lambda::Function") {
		if strings.HasPrefix(function, "Lock"+behind("/"+action)) {
			d.put(metricKey("AWS/Lambda", "Duration", "FunctionName=<"+function+">"), float64(time.Since(started).Milliseconds()))
		}
	}
	return r.StatusCode, answer
}

// read counts what the functions have logged since.
func (d *deployed) read() {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for line := range strings.Lines(d.lines.String()) {
		if strings.HasPrefix(line, "{") { // a function that ends says so in text
			d.all = append(d.all, d.line(line))
		}
	}
	d.lines.Reset()
}
