package infra

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/functions/metrics"
	"github.com/pawl-lock/pawl/infra/routes"
	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/apigw"
)

// acquire takes a lock and returns the members by which its lease is named.
func (d *deployed) acquire(lock string, ttl time.Duration) string {
	d.Helper()
	status, l := d.call("acquire", fmt.Sprintf(`{"lock":%q,"ttl_ms":%d}`, lock, ttl.Milliseconds()))
	if status != http.StatusCreated {
		d.Fatalf("acquire: %d %v", status, l)
	}
	return fmt.Sprintf(`"lock":%q,"lease_id":%q,"token":%d`, lock, l["lease_id"], int64(l["token"].(float64)))
}

// minutely makes the calls of a small deployment for some periods: one a minute.
// Of those that fail the test learns nothing.
func (d *deployed) minutely(periods int) {
	for range periods {
		d.period()
		d.five("read", `{"lock":"a"}`)
	}
}

// five makes a call five times, at once: for an alarm that is the same, and for
// whoever waits for the test it is not.
func (d *deployed) five(action, body string) {
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { d.call(action, body) })
	}
	all.Wait()
	d.read()
}

// expired waits until a lease has run out, and its lock is free.
func (d *deployed) expired(lock string) {
	for {
		if _, s := d.call("read", fmt.Sprintf(`{"lock":%q}`, lock)); s["state"] == "free" {
			return
		}
	}
}

// A dead address is one at which nobody answers any more.
func deadAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// Each alarm rings for its cause, and no other does. Every cause is one for real,
// in the compiled functions as they are deployed, at the rate of a deployment
// that makes one call a minute.
func TestEachAlarmRingsForItsCauseAndNoOther(t *testing.T) {
	_, x := defaults()
	_, unset := synth(t, nil)
	for id := range unset.of("AWS::Lambda::Function") {
		delete(unset["Resources"].(map[string]any)[id].(map[string]any)["Properties"].(map[string]any)["Environment"].(map[string]any)["Variables"].(map[string]any), "METRICS")
	}
	faulty := func(t *testing.T, fault faultproxy.Fault, operations ...string) *deployed {
		e := newTable(t)
		proxy := faultproxy.Start(t, e.endpoint)
		for _, o := range operations {
			proxy.Every(o, fault)
		}
		e.endpoint = proxy.URL
		return deploy(t, x, e, nil)
	}
	acquiring := func(d *deployed, periods int) {
		for range periods {
			d.period()
			d.five("acquire", `{"lock":"a","ttl_ms":1000}`)
		}
	}
	_, quarantine := synth(t, func(_ *TableStackProps, a *APIStackProps) { a.Rules = restored(time.Now().Add(-time.Minute)) })
	rung, wrote := make(map[string]bool), newWriting()
	for name, c := range map[string]struct {
		cause func(t *testing.T) *deployed
		rings string
	}{
		"nothing": {func(t *testing.T) *deployed {
			d := deploy(t, x, newTable(t), nil)
			d.minutely(3)
			d.call("acquire", `{"lock":"c","ttl_ms":1000,"request_id":"0123456789012345678901"}`)
			d.call("acquire", `{"lock":"c","ttl_ms":1000,"request_id":"0123456789012345678901"}`)
			l := d.acquire("b", time.Minute)
			d.call("acquire", `{"lock":"b","ttl_ms":1000}`)
			d.call("renew", "{"+l+`,"ttl_ms":60000}`)
			d.call("release", "{"+l+"}")
			d.call("release", "{"+l+"}")
			// Made up: it was never granted.
			d.call("renew", `{"lock":"never","lease_id":"0000000000000000000000","token":5,"ttl_ms":60000}`)
			d.call("renew", `nonsense`)
			d.read()
			return d
		}, ""},
		"a holder that comes back late": {func(t *testing.T) *deployed {
			d := deploy(t, x, newTable(t), nil)
			l := d.acquire("a", time.Second)
			d.call("acquire", `{"lock":"a","ttl_ms":60000,"wait_ms":5000}`)
			d.call("renew", "{"+l+`,"ttl_ms":60000}`)
			d.read()
			return d
		}, "CameBackLate"},
		"a holder that renews too late": {func(t *testing.T) *deployed {
			d := deploy(t, x, newTable(t), nil)
			l := d.acquire("a", time.Second)
			d.expired("a")
			d.call("renew", "{"+l+`,"ttl_ms":60000}`)
			d.read()
			return d
		}, "CameBackLate"},
		"a holder whose lease was broken": {func(t *testing.T) *deployed {
			d := deploy(t, x, newTable(t), nil)
			l := d.acquire("a", time.Minute)
			_, s := d.call("read", `{"lock":"a"}`)
			d.call("break", fmt.Sprintf(`{"lock":"a","token":%d,"reason":"test"}`, int64(s["token"].(float64))))
			d.call("renew", "{"+l+`,"ttl_ms":60000}`)
			d.read()
			return d
		}, "CameBackLate"},
		"a holder that releases late": {func(t *testing.T) *deployed {
			d := deploy(t, x, newTable(t), nil)
			l := d.acquire("a", time.Second)
			d.expired("a")
			d.call("release", "{"+l+"}")
			d.read()
			return d
		}, "ReleasedLate"},
		"a total outage of the table": {func(t *testing.T) *deployed {
			e := newTable(t)
			e.endpoint = deadAddress(t)
			d := deploy(t, x, e, nil)
			d.minutely(2)
			return d
		}, "ServerErrors Unavailable"},
		"an outage of one call in ten, at a thousand a second": {func(t *testing.T) *deployed {
			e := newTable(t)
			good := deploy(t, x, e, nil)
			e.endpoint = deadAddress(t)
			bad := deploy(t, x, e, nil)
			good.minutely(2)
			bad.minutely(2)
			for i := range good.periods {
				for key, values := range bad.periods[i] {
					good.periods[i][key] = append(slices.Repeat(good.periods[i][key], 9_000), slices.Repeat(values, 1_000)...)
				}
			}
			return good
		}, "ServerErrors Unavailable"},
		"one call in a thousand that fails": {func(t *testing.T) *deployed {
			e := newTable(t)
			good := deploy(t, x, e, nil)
			e.endpoint = deadAddress(t)
			bad := deploy(t, x, e, nil)
			good.minutely(2)
			bad.minutely(2)
			for i := range good.periods {
				for key, values := range bad.periods[i] {
					good.periods[i][key] = append(slices.Repeat(good.periods[i][key], 999), values...)
				}
			}
			return good
		}, ""},
		"answers that are lost": {func(t *testing.T) *deployed {
			d := faulty(t, faultproxy.After(faultproxy.Drop), "UpdateItem")
			acquiring(d, 2)
			return d
		}, "ServerErrors Unknown"},
		"a table that throttles": {func(t *testing.T) *deployed {
			d := faulty(t, faultproxy.Refuse(400, "ProvisionedThroughputExceededException"), "GetItem", "UpdateItem")
			d.minutely(2)
			return d
		}, "TableThrottled"},
		"a clock that is wrong": {func(t *testing.T) *deployed {
			d := faulty(t, faultproxy.Dated(time.Minute), "UpdateItem", "GetItem")
			acquiring(d, 1)
			return d
		}, "ClockSkew"},
		"a table that is not there": {func(t *testing.T) *deployed {
			e := newTable(t)
			e.table = "missing"
			d := deploy(t, x, e, nil)
			d.minutely(1)
			return d
		}, "Misconfigured"},
		"functions that do not start": {func(t *testing.T) *deployed {
			d := deploy(t, unset, newTable(t), nil)
			d.minutely(2)
			d.call("acquire", `{"lock":"a","ttl_ms":1000}`)
			return d
		}, "AcquireErrors RestErrors ServerErrors"},
		"a quarantine after a restore": {func(t *testing.T) *deployed {
			d := deploy(t, quarantine, newTable(t), nil)
			acquiring(d, 2)
			return d
		}, "ServerErrors"},
		"a panic": {func(t *testing.T) *deployed {
			d := &deployed{cloudWatch: cloudWatch{TB: t}, template: x}
			d.period()
			d.line(panicked(t))
			return d
		}, "Panicked"},
		"more waiters than the function has room for": {func(t *testing.T) *deployed {
			d := deploy(t, x, newTable(t), func(r *routes.Route) { r.Concurrency = 1 })
			d.acquire("a", time.Minute)
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { d.call("acquire", `{"lock":"a","ttl_ms":1000,"wait_ms":1000}`) })
			}
			all.Wait()
			d.read()
			return d
		}, "AcquireThrottles"},
		"more calls than the rest has room for": {func(t *testing.T) *deployed {
			e := newTable(t)
			proxy := faultproxy.Start(t, e.endpoint)
			e.endpoint = proxy.URL
			d := deploy(t, x, e, func(r *routes.Route) { r.Concurrency = 1 })
			d.call("read", `{"lock":"a"}`)
			proxy.Next("GetItem", faultproxy.Hang)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { d.call("read", `{"lock":"a"}`) })
			}
			all.Wait()
			d.read()
			return d
		}, "RestThrottles"},
		"more calls than the gateway lets in": {func(t *testing.T) *deployed {
			d := deploy(t, x, newTable(t), func(r *routes.Route) { r.Throttle = routes.Throttle{Rate: 1e-6, Burst: 2} })
			d.minutely(3)
			return d
		}, "TurnedAway"},
		"calls that take long": {func(t *testing.T) *deployed {
			e := newTable(t)
			proxy := faultproxy.Start(t, e.endpoint)
			e.endpoint = proxy.URL
			d := deploy(t, x, e, nil)
			for range 3 {
				d.period()
				proxy.Next("GetItem", faultproxy.Hang) // and then it is asked again
				d.call("read", `{"lock":"a"}`)
			}
			return d
		}, "Latency"},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.cause(t)
			wrote.add(d)
			if got := strings.Join(d.ringing(x), " "); got != c.rings {
				t.Errorf("%q ring, want %q", got, c.rings)
			}
		})
		for _, alarm := range strings.Fields(c.rings) {
			rung[alarm] = true
		}
	}
	for id := range x.of("AWS::CloudWatch::Alarm") {
		if !rung[alarmName(id)] {
			t.Errorf("nothing rings %s", alarmName(id))
		}
	}
	wrote.holds(t, x)
}

// panicked is the line that a panic in the service leaves, through the wiring of
// the function.
func panicked(t *testing.T) string {
	var line bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(metrics.Handler{Handler: slog.NewJSONHandler(&line, nil), In: "Pawl/Pawl"}))
	h := apigw.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }))
	var e apigw.Event
	if err := json.Unmarshal([]byte(`{"version":"2.0","rawPath":"/","requestContext":{"http":{"method":"GET","protocol":"HTTP/1.1","sourceIp":"192.0.2.1"}}}`), &e); err != nil {
		t.Fatal(err)
	}
	if _, err := h(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	return line.String()
}
