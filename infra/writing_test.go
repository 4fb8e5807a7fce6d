package infra

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A writing is what deployments have written: metrics, and the outcomes and
// members of their lines.
type writing struct{ metrics, outcomes, members map[string]bool }

func newWriting() *writing {
	return &writing{make(map[string]bool), make(map[string]bool), make(map[string]bool)}
}

func (w *writing) add(d *deployed) {
	for _, p := range d.periods {
		for key := range p {
			w.metrics[key] = true
		}
	}
	for _, line := range d.all {
		if outcome, ok := line["outcome"].(string); ok {
			w.outcomes[outcome] = true
		}
		for name := range line {
			w.members[name] = true
		}
	}
}

// graphed are the metrics in the body of a dashboard, and searched those that it
// looks for by namespace.
var (
	graphed  = regexp.MustCompile(`"(Pawl/Pawl|AWS/ApiGateway)","(\w+)"`)
	searched = regexp.MustCompile(`SEARCH\('\{\\"([^"\\]+)\\",(\w+)\} MetricName=\\"(\w+)\\"'`)

	quoted = regexp.MustCompile(`"([a-z_]+)"`)
	fields = regexp.MustCompile(`\b(action|outcome|namespace|lock|token|new_token|holder|principal|reason|late)\b`)
)

// holds checks that what is watched, shown and asked for has really been written:
// a metric or an outcome with a typing error would be an alarm that never rings.
func (w *writing) holds(t *testing.T, x template) {
	for id, alarm := range x.of("AWS::CloudWatch::Alarm") {
		list, _ := alarm["Metrics"].([]any)
		watched := []props{alarm}
		for i := range list {
			if stat, ok := alarm.at("Metrics", i, "MetricStat").(map[string]any); ok {
				watched = append(watched, stat)
			}
		}
		if list != nil {
			watched = watched[1:]
		}
		for _, m := range watched {
			if key, _ := keyOf(m); !w.metrics[key] {
				t.Errorf("%s watches %s, which nobody writes", id, key)
			}
		}
	}
	_, dashboard := x.one(t, "AWS::CloudWatch::Dashboard")
	body := fmt.Sprint(resolve(dashboard["DashboardBody"]))
	shown := 0
	for _, m := range graphed.FindAllStringSubmatch(body, -1) {
		api, _ := x.one(t, "AWS::ApiGatewayV2::Api")
		if shown++; !w.metrics[metricKey(m[1], m[2])] && !w.metrics[metricKey(m[1], m[2], "ApiId=<"+api+">")] {
			t.Errorf("the dashboard shows %s of %s, which nobody writes", m[2], m[1])
		}
	}
	for _, m := range searched.FindAllStringSubmatch(body, -1) {
		if shown++; !w.metrics[metricKey(m[1], m[3], m[2]+"=payments")] {
			t.Errorf("the dashboard looks for %s by %s, which nobody writes", m[3], m[2])
		}
	}
	if shown < 20 || len(searched.FindAllString(body, -1)) < 4 {
		t.Errorf("the dashboard shows only %d metrics: %s", shown, body)
	}
	asked := 0
	for _, q := range x.of("AWS::Logs::QueryDefinition") {
		text := q["QueryString"].(string)
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			if asked++; !w.outcomes[m[1]] {
				t.Errorf("%s asks for %s, which is the outcome of no call", q["Name"], m[1])
			}
		}
		for _, name := range fields.FindAllString(text, -1) {
			if asked++; !w.members[name] {
				t.Errorf("%s asks for %s, which no line has", q["Name"], name)
			}
		}
		if strings.Contains(text, "late") && !strings.Contains(text, "late = 1") && !strings.Contains(text, "released_late") {
			t.Errorf("%s compares late with something else than 1, as which Insights reads true", q["Name"])
		}
	}
	if asked < 30 {
		t.Errorf("the queries ask for only %d names", asked)
	}
}
