package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/localtest/rigor"
)

func TestTheConfigurationFileMayBeMissingButNotBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cdk.json")
	if context, err := fileContext(path); err != nil || context == nil {
		t.Errorf("missing: %v, %v", context, err)
	}
	for text, ok := range map[string]bool{`{"app": "x"}`: true, `{"context": {"pawl:stage": "prod"}}`: true, `{"context": `: false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		context, err := fileContext(path)
		if (err == nil) != ok || strings.Contains(text, "prod") && context["pawl:stage"] != "prod" {
			t.Errorf("%s: %v, %v", text, context, err)
		}
	}
	if _, err := fileContext("../cdk.json"); err != nil {
		t.Error(err)
	}
}

// dist is where the functions would be, if they had been built.
func dist(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("JSII_NODE") == "" {
		rigor.Lacking(t, errors.New("the CDK needs node: install it, or name it in JSII_NODE"))
	}
	t.Setenv("CDK_DEFAULT_REGION", "eu-west-1")
	dist := t.TempDir()
	for _, function := range []string{"api", "sweeper"} {
		if err := os.Mkdir(filepath.Join(dist, function), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dist
}

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

const strong = `"pawl:consistency": "strong", "pawl:replicas": "eu-west-2,eu-central-1"`

func TestTheContextBecomesStacks(t *testing.T) {
	dist := dist(t)
	for _, c := range []struct {
		context string
		stacks  string
		has     []string // in the templates
	}{
		{`{}`, "Pawl PawlTable", []string{`/v1/default/acquire`, `"AWS_IAM"`}},
		{`{"pawl:table": "restored", "pawl:restored-at-ms": 1790000000123, "pawl:quarantine-end-ms": 1790003661123}`, "Pawl",
			[]string{`"RESTORED_AT_MS":"1790000000123"`, `"QUARANTINE_END_MS":"1790003661123"`, `"TABLE":"restored"`}},
		{`{"pawl:consistency": "strong", "pawl:replicas": "eu-west-2", "pawl:witness": "eu-central-1", "pawl:sweep-minutes": 15, "pawl:sweep-rate": 200}`,
			"PawlSweeper Pawl PawlTable",
			[]string{`"eu-west-1"`, `"GlobalTableWitnesses":[{"Region":"eu-central-1"}]`, `dynamodb:Scan`, `rate(15 minutes)`, `"SWEEP_RATE":"200"`}},
		{`{"pawl:region": "us-east-1", "pawl:consistency": "strong", "pawl:replicas": "us-east-2, us-west-2", "pawl:table-key-arn": "` + key("us-east-1") +
			`", "pawl:replica-key-arns": "` + key("us-east-2") + `,` + key("us-west-2") + `"}`, "PawlSweeper Pawl PawlTable",
			[]string{key("us-east-1"), key("us-east-2"), key("us-west-2")}},
		{`{"pawl:jwt-issuer": "https://a.example", "pawl:jwt-audience": "b, c", "pawl:rate": 0.5, "pawl:burst": 3, "pawl:acquire-concurrency": -3,
			"pawl:concurrency": "-13", "pawl:jwt-scope-claim": "roles"}`,
			"Pawl PawlTable", []string{`"Audience":["b","c"]`, `"ThrottlingRateLimit":0.5`, `"SCOPE_CLAIM":"roles"`}},
	} {
		names, text, err := synthesize(t, c.context, dist)
		if err != "" || names != c.stacks {
			t.Errorf("%s: stacks %q, error %q", c.context, names, err)
		}
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s", c.context, want)
			}
		}
	}
}

// Each would be ignored, or refused by AWS after everything else has been made.
func TestAParameterThatIsWrongIsNamedBeforeAnythingIsMade(t *testing.T) {
	dist := dist(t)
	const domain = `"pawl:domain": "locks.example.com", "pawl:certificate-arn": "arn:aws:acm:eu-west-1:123456789012:certificate/1"`
	const jwt = `"pawl:jwt-issuer": "https://a.example", "pawl:jwt-audience": "b"`
	later := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	for _, c := range []struct{ context, names string }{
		// Names.
		{`"pawl:restored-at-sm": 1790000000123`, "pawl:restored-at-sm"},
		{`"Pawl:stage": "prod"`, "Pawl:stage"},
		{`"PAWL:stage": "prod"`, "PAWL:stage"},
		{`"pawl:Stage": "prod"`, "pawl:Stage"},
		{`"pawl:max-ttl": 1000`, "pawl:max-ttl"},
		{`"pawl:stage": ""`, "pawl:stage"},
		{`"pawl:stage": " prod"`, "pawl:stage"},
		{`"pawl:namespaces": ["a", "b"]`, "pawl:namespaces"},
		{`"pawl:memory-mb": "much", "pawl:concurrency": 1.5, "pawl:tracing": "yes", "pawl:burst": 0`,
			"pawl:memory-mb pawl:concurrency pawl:tracing pawl:burst"},
		// The table.
		{`"pawl:table": "a b/c*"`, "pawl:table"},
		{`"pawl:table": "*"`, "pawl:table"},
		{`"pawl:table": "arn:aws:dynamodb:eu-west-1:123456789012:table/x"`, "pawl:table"},
		{`"pawl:table-name": "a b*"`, "pawl:table-name"},
		{`"pawl:table-stack": "Pawl"`, "pawl:table-stack"},
		{`"pawl:table-stack": "PawlTable2", "pawl:table": "locks"`, "pawl:table-stack"},
		{`"pawl:table": "locks", "pawl:table-name": "x", "pawl:aws-managed-key": true, "pawl:sweep-rate": 100, ` + strong,
			"pawl:table-name pawl:consistency pawl:replicas pawl:aws-managed-key pawl:sweep-rate"},
		{`"pawl:table": "locks", "pawl:witness": "eu-west-2"`, "pawl:witness"},
		{`"pawl:table-key-arn": "alias/locks"`, "pawl:table-key-arn"},
		{`"pawl:table-key-arn": "` + key("us-east-1") + `"`, "pawl:table-key-arn"},
		{`"pawl:replica-key-arns": "a"`, "pawl:replica-key-arns"},
		{`"pawl:consistency": "STRONG"`, "pawl:consistency"},
		{`"pawl:consistency": "strong", "pawl:replicas": "eu-west-2,,eu-central-1"`, "pawl:replicas"},
		{`"pawl:consistency": "strong", "pawl:replicas": "eu-west-2,eu-west-2"`, "pawl:replicas"},
		{`"pawl:replicas": "us-east-1"`, "pawl:replicas"},
		{`"pawl:sweep-minutes": 30`, "pawl:sweep-minutes"},
		{`"pawl:sweep-minutes": 5, ` + strong, "pawl:sweep-minutes"},
		{`"pawl:sweep-minutes": 1441, ` + strong, "pawl:sweep-minutes"},
		{`"pawl:sweep-rate": -1, ` + strong, "pawl:sweep-rate"},
		{`"pawl:sweep-rate": "NaN", ` + strong, "pawl:sweep-rate"},
		{`"pawl:region": "mars-1"`, "pawl:region"},
		// Limits.
		{`"pawl:restored-at-ms": 1790000000, "pawl:quarantine-end-ms": 1790003661`, "pawl:restored-at-ms"},
		{`"pawl:restored-at-ms": 4000000000000, "pawl:quarantine-end-ms": 4000003661000`, "pawl:restored-at-ms"},
		{`"pawl:restored-at-ms": ` + later + `, "pawl:quarantine-end-ms": ` + later, "pawl:restored-at-ms"},
		{`"pawl:restored-at-ms": 1790000000123`, "pawl:quarantine-end-ms"},
		{`"pawl:restored-at-ms": 1790000000123, "pawl:quarantine-end-ms": 1790000000123`, "pawl:quarantine-end-ms"},
		{`"pawl:max-ttl-ms": 18446747673710`, "pawl:max-ttl-ms"},
		{`"pawl:max-ttl-ms": -1`, "pawl:max-ttl-ms"},
		{`"pawl:max-ttl-ms": 172800000`, "pawl:max-ttl-ms"},
		{`"pawl:skew-ms": 600000`, "pawl:skew-ms"},
		// Callers.
		{`"pawl:namespaces": "a,a"`, "pawl:namespaces"},
		{`"pawl:namespaces": "a,,b"`, "pawl:namespaces"},
		{`"pawl:namespaces": "A"`, "pawl:namespaces"},
		{`"pawl:namespaces": "a", ` + jwt, "pawl:namespaces"},
		{`"pawl:jwt-audience": "b"`, "pawl:jwt-issuer"},
		{`"pawl:jwt-issuer": "https://a.example"`, "pawl:jwt-audience"},
		{`"pawl:jwt-issuer": "https://", "pawl:jwt-audience": "b"`, "pawl:jwt-issuer"},
		{`"pawl:jwt-issuer": "http://a.example", "pawl:jwt-audience": "b"`, "pawl:jwt-issuer"},
		{`"pawl:jwt-issuer": "https://a.example?x=1", "pawl:jwt-audience": "b"`, "pawl:jwt-issuer"},
		{`"pawl:jwt-issuer": "https://a.example", "pawl:jwt-audience": "b,,c"`, "pawl:jwt-audience"},
		{`"pawl:jwt-issuer": "https://a.example", "pawl:jwt-audience": "b,b"`, "pawl:jwt-audience"},
		{`"pawl:jwt-scope-claim": "roles"`, "pawl:jwt-scope-claim"},
		{`"pawl:jwt-scope-claim": "ro les", ` + jwt, "pawl:jwt-scope-claim"},
		// The API.
		{`"pawl:stage": "v1"`, "pawl:stage"},
		{`"pawl:domain": "locks.example.com"`, "pawl:certificate-arn"},
		{`"pawl:certificate-arn": "arn:aws:acm:eu-west-1:123456789012:certificate/1"`, "pawl:domain"},
		{`"pawl:domain": "https://locks.example.com/", "pawl:certificate-arn": "foo"`, "pawl:domain pawl:certificate-arn"},
		{strings.Replace(domain, "eu-west-1", "us-east-1", 1), "pawl:certificate-arn"},
		{`"pawl:rate": 10`, "pawl:burst"},
		{`"pawl:burst": 10`, "pawl:rate"},
		{`"pawl:rate": -1, "pawl:burst": 10`, "pawl:rate"},
		{`"pawl:rate": "Inf", "pawl:burst": 10`, "pawl:rate"},
		{`"pawl:rate": 1000, "pawl:burst": 500`, "pawl:rate pawl:burst"},
		{`"pawl:concurrency": 100000`, "pawl:concurrency"},
		{`"pawl:concurrency": 3`, "pawl:concurrency"},
		{`"pawl:acquire-concurrency": -100000`, "pawl:acquire-concurrency"},
		{`"pawl:concurrency": 1e300`, "pawl:concurrency"},
		{`"pawl:memory-mb": 20000`, "pawl:memory-mb"},
		{`"pawl:memory-mb": 64`, "pawl:memory-mb"},
		{`"pawl:log-retention-days": 91`, "pawl:log-retention-days"},
		{`"pawl:log-retention-days": -1`, "pawl:log-retention-days"},
		{`"pawl:alarm-topic-arn": "alerts@example.com"`, "pawl:alarm-topic-arn"},
		{`"pawl:alarm-topic-arn": "arn:aws:sns:us-east-1:123456789012:alarms"`, "pawl:alarm-topic-arn"},
	} {
		names, _, err := synthesize(t, "{"+c.context+"}", dist)
		for _, name := range strings.Fields(c.names) {
			if names != "" || !strings.Contains(err, name) {
				t.Errorf("%s: stacks %q, and the error does not name %s: %q", c.context, names, name, err)
			}
		}
		for line := range strings.Lines(err) {
			if strings.Count(err, line) > 1 {
				t.Errorf("%s: told twice: %s", c.context, line)
			}
		}
	}
}

func key(region string) string { return "arn:aws:kms:" + region + ":123456789012:key/1" }

// synthesize returns the names and the templates of the stacks, or the error.
func synthesize(t *testing.T, context, dist string) (names, text, failed string) {
	t.Helper()
	defer func() {
		if reason := recover(); reason != nil {
			failed = named(reason.(error)).Error()
		}
	}()
	var given map[string]any
	if err := json.Unmarshal([]byte(context), &given); err != nil {
		t.Fatal(err)
	}
	app := awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false), BuiltinCloudFormationValidation: jsii.Bool(false), Context: &given})
	all, _ := app.Node().GetAllContext(nil).(map[string]any)
	if err := stacks(app, newParameters(all), dist); err != nil {
		return "", "", err.Error()
	}
	for _, s := range *app.Synth(nil).Stacks() {
		template, err := json.Marshal(s.Template())
		if err != nil {
			t.Fatal(err)
		}
		names = *s.StackName() + " " + names
		text += string(template)
	}
	return strings.TrimSpace(names), text, ""
}
