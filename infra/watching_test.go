package infra

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestThereIsAnAlarmForEachPromise(t *testing.T) {
	_, x := defaults()
	watched := make(map[string]bool)
	for id, a := range x.of("AWS::CloudWatch::Alarm") {
		name := fmt.Sprint(a["MetricName"])
		if a["MetricName"] == nil { // a sum
			name = fmt.Sprint(resolve(a["Metrics"]))
		}
		if a["Namespace"] == "Pawl" && a["Dimensions"] != nil {
			t.Errorf("%s watches %v only", id, a["Dimensions"])
		}
		if a["TreatMissingData"] != "notBreaching" || a["ComparisonOperator"] != "GreaterThanOrEqualToThreshold" || a["AlarmDescription"] == nil {
			t.Errorf("%s: %v", id, a)
		}
		for _, what := range []string{"CameBackLate", "ClockSkew", "Misconfigured", "Unknown", "Throttled", "Errors", "Throttles", "5xx", "Duration"} {
			if strings.Contains(name, what) {
				watched[what] = true
			}
		}
		if name == "CameBackLate" && a["Threshold"] != 1.0 {
			t.Errorf("the first holder that comes back late is not told: %v", a)
		}
		if name == "Duration" && a["ExtendedStatistic"] != "p99" {
			t.Errorf("latency is watched by %v", a)
		}
	}
	if len(watched) != 9 {
		t.Errorf("only %v are watched", watched)
	}
}

// What is watched and asked for is what the functions write: a metric or an
// outcome with a typing error would be an alarm that never rings.
func TestWhatIsWatchedIsWhatTheFunctionsWrite(t *testing.T) {
	source, err := os.ReadFile("../functions/api/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := os.ReadFile("../pkg/lease/httplease/log.go")
	if err != nil {
		t.Fatal(err)
	}
	_, x := defaults()
	_, dashboard := x.one(t, "AWS::CloudWatch::Dashboard")
	body := fmt.Sprint(resolve(dashboard["DashboardBody"]))
	names := regexp.MustCompile(`"Pawl","(\w+)"|MetricName=\\"(\w+)\\"`).FindAllStringSubmatch(body, -1)
	for _, a := range x.of("AWS::CloudWatch::Alarm") {
		if a["Namespace"] == "Pawl" {
			names = append(names, []string{"", a["MetricName"].(string), ""})
		}
	}
	if len(names) < 15 {
		t.Fatalf("only %d metrics were found: %v", len(names), names)
	}
	for _, n := range names {
		if name := n[1] + n[2]; !strings.Contains(string(source), `"`+name+`"`) {
			t.Errorf("%s is watched, and no function counts it", name)
		}
	}
	outcome := regexp.MustCompile(`"([a-z_]+)"`)
	field := regexp.MustCompile(`\b(action|outcome|namespace|lock|token|new_token|holder|principal|reason)\b`)
	for _, q := range queries {
		for _, m := range outcome.FindAllStringSubmatch(q.text, -1) {
			if name := m[1]; !strings.Contains(string(source), `"`+name+`"`) {
				t.Errorf("%s asks for %s, which is no outcome", q.name, name)
			}
		}
		for _, f := range field.FindAllString(q.text, -1) {
			if !strings.Contains(string(handler), `("`+f+`",`) {
				t.Errorf("%s asks for %s, which no line has", q.name, f)
			}
		}
	}
}

func TestTheDashboardAnswersItsThreeQuestions(t *testing.T) {
	_, x := defaults()
	_, dashboard := x.one(t, "AWS::CloudWatch::Dashboard")
	body := fmt.Sprint(resolve(dashboard["DashboardBody"]))
	for _, want := range []string{"Is it healthy?", "Who is contended?", "Who keeps losing leases?", "Refused by namespace", "CameBackLate by namespace"} {
		if !strings.Contains(body, want) {
			t.Errorf("the dashboard lacks %q", want)
		}
	}
}

func TestTheQueriesAreSavedForTheLogsOfBothFunctions(t *testing.T) {
	_, x := defaults()
	saved := make(map[string]bool)
	for _, q := range x.of("AWS::Logs::QueryDefinition") {
		saved[fmt.Sprint(q["Name"])] = len(q["LogGroupNames"].([]any)) == 2
	}
	for _, name := range []string{"who-held-token-N-of-lock-L", "all-breaks", "longest-holds", "who-is-contended", "who-came-back-late"} {
		if !saved["Pawl/"+name] {
			t.Errorf("%s is not saved for both: %v", name, saved)
		}
	}
}
