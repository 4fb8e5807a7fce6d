package openapi

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// checks are what no answer may fail. That what is valid by the spec is accepted
// is not among them: the spec cannot say bytes, nor that min_hold_ms is at most
// ttl_ms, nor which lease is held.
const checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance," +
	"response_schema_conformance,negative_data_rejection"

// A round takes 45 seconds, and makes as many calls as they allow. CASES asks
// for rounds until there were so many calls, each with another seed every time.
func TestSchemathesisFindsNothingUndocumented(t *testing.T) {
	py := localtest.PythonForTest(t, "schemathesis.txt")
	url := serve(t)
	spec := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(spec, asItIsToday(t, url), 0o600); err != nil {
		t.Fatal(err)
	}
	hooks, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	wanted, _ := strconv.Atoi(os.Getenv("CASES"))
	total := 0
	for round := 1; round == 1 || total < wanted; round++ {
		dir := t.TempDir()
		args := []string{"-m", "schemathesis.cli", "run", spec, "--url", url, "--checks", checks, "--max-time", "45",
			"--request-timeout", "30", // longer than any answer takes
			"--no-color", "--continue-on-failure", "--report", "json", "--report-json-path", "report.json"}
		if wanted == 0 {
			args = append(args, "--seed", "2") // has answers of every status
		}
		cmd := exec.CommandContext(t.Context(), py, args...)
		cmd.Dir = dir // it leaves files
		cmd.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS=hooks", "PYTHONPATH="+hooks, "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		var report struct {
			Cases      struct{ Generated int } `json:"test_cases"`
			Operations struct{ Tested int }
		}
		text, _ := os.ReadFile(filepath.Join(dir, "report.json"))
		if json.Unmarshal(text, &report) != nil || err != nil || report.Operations.Tested != 8 || report.Cases.Generated < 100 {
			t.Fatalf("%v, %+v\n%s", err, report, out)
		}
		total += report.Cases.Generated
		t.Logf("%d calls in round %d, %d in all", report.Cases.Generated, round, total)
	}
}

// asItIsToday returns the spec that a server has, without what leaves it open
// for tomorrow: an answer with a status, a member or a shape that is not written
// there is an error.
func asItIsToday(t *testing.T, url string) []byte {
	a, err := http.Get(url + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	type object = map[string]any
	for _, item := range doc["paths"].(object) {
		for method, operation := range item.(object) {
			if method != "parameters" {
				delete(operation.(object)["responses"].(object), "default")
			}
		}
	}
	for name, schema := range doc["components"].(object)["schemas"].(object) {
		if s := schema.(object); s["type"] == "object" {
			s["additionalProperties"] = false
			if name == "Problem" {
				s["required"] = []string{"type", "title", "status", "detail", "code"}
			}
		}
	}
	text, err = json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var ready = regexp.MustCompile(`listening on (http://\S+),`)

// serve starts the server that make serve runs, without throttles: they are not
// what is tested.
func serve(t *testing.T) (url string) {
	t.Helper()
	db := localtest.DynamoDBForTest(t)
	server := filepath.Join(t.TempDir(), "server")
	run(t, exec.CommandContext(t.Context(), "go", "build", "-o", server, "../server"))
	cmd := exec.Command(server)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "AUTH=") }),
		"ADDR=127.0.0.1:0", "THROTTLE=off", "DYNAMODB_ENDPOINT="+db.Endpoint, "TABLE=table-"+lease.NewID())
	p, err := process.StartTalk(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() }) // it may have ended
	line, err := p.Hear(t.Context())
	if err != nil || !ready.MatchString(line) {
		t.Fatalf("the server printed %q, error %v", line, err)
	}
	return ready.FindStringSubmatch(line)[1]
}
