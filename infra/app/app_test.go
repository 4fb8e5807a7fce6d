package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func TestParametersThatAreWrongAreAllNamed(t *testing.T) {
	p := newParameters(map[string]any{
		"pawl:memory-mb": "much", "pawl:concurrency": 1.5, "pawl:tracing": "yes", "pawl:burst": 0.0,
		"pawl:max-ttl": 1000.0, "aws:cdk:something": "else",
	})
	p.integer("memory-mb")
	p.integer("concurrency")
	p.integer("burst")
	p.yes("tracing")
	text := p.err().Error()
	for _, want := range []string{"pawl:memory-mb", "pawl:concurrency", "pawl:burst", "pawl:tracing", "pawl:max-ttl is no parameter"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not name %s", text, want)
		}
	}
	if strings.Count(text, "\n") != 4 {
		t.Errorf("got %q", text)
	}
}

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

func TestTheContextBecomesStacks(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("JSII_NODE") == "" {
		if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
			t.Fatal("the CDK needs node")
		}
		t.Skip("the CDK needs node: install it, or name it in JSII_NODE")
	}
	defer jsii.Close()
	t.Setenv("CDK_DEFAULT_REGION", "eu-west-1")
	dist := t.TempDir()
	for _, function := range []string{"api", "sweeper"} {
		if err := os.Mkdir(filepath.Join(dist, function), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		context string
		stacks  string
		has     []string // in the templates
		err     string
	}{
		{`{}`, "Pawl PawlTable", []string{`/v1/default/acquire`, `"AWS_IAM"`}, ""},
		{`{"pawl:table": "restored", "pawl:restored-at-ms": 1790000000123, "pawl:quarantine-end-ms": 1790003661123}`, "Pawl",
			[]string{`"RESTORED_AT_MS":"1790000000123"`, `"QUARANTINE_END_MS":"1790003661123"`, `"TABLE":"restored"`}, ""},
		{`{"pawl:restored-at-ms": 1790000000123}`, "", nil, "QuarantineEnd"},
		{`{"pawl:consistency": "strong", "pawl:replicas": "eu-west-2", "pawl:witness": "eu-central-1"}`, "Pawl PawlTable",
			[]string{`"eu-west-1"`, `"GlobalTableWitnesses":[{"Region":"eu-central-1"}]`, `dynamodb:Scan`}, ""},
		{`{"pawl:region": "us-east-1", "pawl:consistency": "strong", "pawl:replicas": "us-east-2,us-west-2", "pawl:table-key-arn": "` + key("1") +
			`", "pawl:replica-key-arns": "` + key("2") + `,` + key("3") + `"}`, "Pawl PawlTable", []string{key("1"), key("2"), key("3")}, ""},
		{`{"pawl:jwt-issuer": "https://a.example", "pawl:jwt-audience": "b,c", "pawl:rate": 0.5, "pawl:burst": 3, "pawl:acquire-concurrency": -1}`,
			"Pawl PawlTable", []string{`"Audience":["b","c"]`, `"ThrottlingRateLimit":0.5`}, ""},
		{`{"pawl:jwt-audience": "b"}`, "", nil, "issuer"},
		{`{"pawl:restored-at-sm": 1800000000123}`, "", nil, "pawl:restored-at-sm is no parameter"},
		{`{"pawl:replica-key-arns": "a"}`, "", nil, "0 replicas have 1 keys"},
	} {
		names, text, err := synthesize(t, c.context, dist)
		if (err == "") != (c.err == "") || !strings.Contains(err, c.err) || names != c.stacks {
			t.Errorf("%s: stacks %q, error %q", c.context, names, err)
		}
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s", c.context, want)
			}
		}
	}
}

func key(n string) string { return "arn:aws:kms:us-east-1:123456789012:key/" + n }

// synthesize returns the names and the templates of the stacks, or the error.
func synthesize(t *testing.T, context, dist string) (names, text, failed string) {
	t.Helper()
	defer func() {
		if reason := recover(); reason != nil {
			failed = reason.(error).Error()
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
