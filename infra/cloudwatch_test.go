package infra

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/functions/metrics"
)

// A cloudWatch has the values of each metric, period by period, and evaluates
// alarms as CloudWatch documents it.
type cloudWatch struct {
	testing.TB
	periods []map[string][]float64 // by namespace, name and dimensions
}

// period starts the next one.
func (c *cloudWatch) period() { c.periods = append(c.periods, make(map[string][]float64)) }

func metricKey(namespace, name string, dimensions ...string) string {
	slices.Sort(dimensions)
	return strings.Join(append([]string{namespace, name}, dimensions...), "|")
}

func (c *cloudWatch) put(key string, values ...float64) {
	now := c.periods[len(c.periods)-1]
	now[key] = append(now[key], values...)
}

// line reads a log line in the embedded metric format.
func (c *cloudWatch) line(text string) (members map[string]any) {
	c.Helper()
	var l struct {
		AWS struct {
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		c.Fatalf("%v: %s", err, text)
	}
	_ = json.Unmarshal([]byte(text), &members) // it is JSON
	for _, set := range l.AWS.CloudWatchMetrics {
		for _, names := range set.Dimensions {
			var dimensions []string
			for _, d := range names {
				dimensions = append(dimensions, fmt.Sprint(d, "=", members[d]))
			}
			for _, m := range set.Metrics {
				c.put(metricKey(set.Namespace, m.Name, dimensions...), members[m.Name].(float64))
			}
		}
	}
	return members
}

// accessed reads a line of the gateway's access log by a metric filter.
func (c *cloudWatch) accessed(filter props, line map[string]string) {
	c.Helper()
	pattern := filter["FilterPattern"].(string)
	term := regexp.MustCompile(`^\(\$\.(\w+) = "([^"]*)"\)$`)
	inner, open := strings.CutPrefix(pattern, "{ ")
	inner, closed := strings.CutSuffix(inner, " }")
	for one := range strings.SplitSeq(inner, " && ") {
		m := term.FindStringSubmatch(one)
		if !open || !closed || m == nil {
			c.Fatalf("the filter %q is not understood", pattern)
		}
		if line[m[1]] != m[2] {
			return
		}
	}
	c.put(metricKey(filter.at("MetricTransformations", 0, "MetricNamespace").(string), filter.at("MetricTransformations", 0, "MetricName").(string)), 1)
}

// value is a statistic of a metric in a period; ok is false if it has none there.
func (c *cloudWatch) value(period int, m props) (value float64, ok bool) {
	c.Helper()
	key, stat := keyOf(m)
	values := c.periods[period][key]
	if len(values) == 0 {
		return 0, false
	}
	switch stat {
	case "Sum":
		for _, v := range values {
			value += v
		}
	case "SampleCount":
		value = float64(len(values))
	case "Maximum":
		value = slices.Max(values)
	case "p99":
		sorted := slices.Sorted(slices.Values(values))
		value = sorted[int(math.Ceil(.99*float64(len(sorted))))-1]
	default:
		c.Fatalf("the statistic %q is not understood", stat)
	}
	return value, true
}

// keyOf returns what metric is watched, and by which statistic: of an alarm, or
// of one of the metrics of its expression.
func keyOf(m props) (key, stat string) {
	for _, s := range []string{"Statistic", "ExtendedStatistic", "Stat"} {
		if m[s] != nil {
			stat = m[s].(string)
		}
	}
	if inner, ok := m["Metric"].(map[string]any); ok {
		m = inner
	}
	var dimensions []string
	list, _ := m["Dimensions"].([]any)
	for i := range list {
		dimensions = append(dimensions, fmt.Sprint(m.at("Dimensions", i, "Name"), "=", resolve(m.at("Dimensions", i, "Value"))))
	}
	return metricKey(m["Namespace"].(string), m["MetricName"].(string), dimensions...), stat
}

var ratio = regexp.MustCompile(`^100 \* (\w+) / (\w+)$`)

// watched returns the value that an alarm looks at in a period. An expression has
// none where one of its series has none.
func (c *cloudWatch) watched(period int, alarm props) (float64, bool) {
	c.Helper()
	list, _ := alarm["Metrics"].([]any)
	if list == nil {
		return c.value(period, alarm)
	}
	values := make(map[string]float64)
	expression := ""
	for _, one := range list {
		m := props(one.(map[string]any))
		if e, ok := m["Expression"].(string); ok {
			expression = e
			continue
		}
		if v, ok := c.value(period, m["MetricStat"].(map[string]any)); ok {
			values[m["Id"].(string)] = v
		}
	}
	ids := ratio.FindStringSubmatch(expression)
	if ids == nil {
		c.Fatalf("the expression %q is not understood", expression)
	}
	part, has := values[ids[1]]
	all, hasAll := values[ids[2]]
	return 100 * part / all, has && hasAll
}

// rings evaluates an alarm at the end of the last period.
func (c *cloudWatch) rings(alarm props) bool {
	c.Helper()
	of := int(alarm["EvaluationPeriods"].(float64))
	in := of
	if n, ok := alarm["DatapointsToAlarm"].(float64); ok {
		in = int(n)
	}
	breaching := 0
	for i := len(c.periods) - of; i < len(c.periods); i++ {
		var value float64
		ok := false
		if i >= 0 {
			value, ok = c.watched(i, alarm)
		}
		threshold, breach := alarm["Threshold"].(float64), false
		switch compare := alarm["ComparisonOperator"]; {
		case !ok:
			breach = alarm["TreatMissingData"] == "breaching"
		case compare == "GreaterThanOrEqualToThreshold":
			breach = value >= threshold
		case compare == "LessThanThreshold":
			breach = value < threshold
		default:
			c.Fatalf("the comparison %v is not understood", compare)
		}
		if breach {
			breaching++
		}
	}
	return breaching >= in
}

// ringing returns the alarms of a template that ring, by the ends of their ids
// that constructs have given them.
func (c *cloudWatch) ringing(x template) (ids []string) {
	c.Helper()
	for id, alarm := range x.of("AWS::CloudWatch::Alarm") {
		if c.rings(alarm) {
			ids = append(ids, alarmName(id))
		}
	}
	slices.Sort(ids)
	return ids
}

var alarmID = regexp.MustCompile(`^(?:Lock|Sweeper)(\w+)Alarm[0-9A-F]{8}$`)

func alarmName(id string) string { return alarmID.FindStringSubmatch(id)[1] }

func TestAlarmsAreEvaluatedAsCloudWatchDoes(t *testing.T) {
	c := &cloudWatch{TB: t}
	alarm := props{
		"Namespace": "N", "MetricName": "M", "Statistic": "Sum", "Threshold": 2.0, "EvaluationPeriods": 3.0, "DatapointsToAlarm": 2.0,
		"ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching",
	}
	for i, step := range []struct {
		values []float64
		rings  bool
	}{{[]float64{1, 1}, false}, {nil, false}, {[]float64{2}, true}, {[]float64{1}, false}, {[]float64{3}, true}, {nil, false}} {
		c.period()
		c.put(metricKey("N", "M"), step.values...)
		if got := c.rings(alarm); got != step.rings {
			t.Errorf("step %d: %v", i, got)
		}
	}
	c.line(`{"a": 5, "namespace": "x", "_aws": {"CloudWatchMetrics": [{"Namespace": "N", "Dimensions": [[], ["namespace"]], "Metrics": [{"Name": "a"}]}]}}`)
	for _, key := range []string{metricKey("N", "a"), metricKey("N", "a", metrics.Namespace+"=x")} {
		if got := c.periods[len(c.periods)-1][key]; !slices.Equal(got, []float64{5}) {
			t.Errorf("%s: got %v", key, got)
		}
	}
	below := props{
		"Namespace": "N", "MetricName": "M", "Statistic": "Sum", "Threshold": 1.0, "EvaluationPeriods": 2.0,
		"ComparisonOperator": "LessThanThreshold", "TreatMissingData": "breaching",
	}
	if c.rings(below) {
		t.Error("one period without is enough")
	}
	if c.period(); !c.rings(below) {
		t.Error("two periods without are not enough")
	}
}
