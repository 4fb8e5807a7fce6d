package infra

import (
	"fmt"
	"strings"
	"testing"
)

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
