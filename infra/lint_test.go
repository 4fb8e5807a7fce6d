package infra

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/localtest"
)

// unfollowed are the rules that are not followed, each with its reason.
var unfollowed = map[string]string{
	"W3005": "the CDK says DependsOn where a reference implies it: redundant, and it does no harm",
}

func TestCFNLintFindsNothingWhateverTheParameters(t *testing.T) {
	python := localtest.PythonForTest(t, "testdata/cfn-lint.txt")
	dir := t.TempDir()
	var files []string
	write := func(name string, x template) {
		text, err := json.Marshal(x)
		if err == nil {
			files = append(files, filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".json"))
			err = os.WriteFile(files[len(files)-1], text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	type change = func(*TableStackProps, *APIStackProps)
	in := func(region string) change {
		return func(s *TableStackProps, a *APIStackProps) {
			s.Env = &awscdk.Environment{Region: jsii.String(region)}
			a.Env = s.Env
		}
	}
	for name, c := range map[string]change{
		"default":    nil,
		"strong":     makeStrong,
		"Oregon":     in("us-west-2"),
		"China":      in("cn-north-1"),
		"government": in("us-gov-west-1"),
		"a witness": func(s *TableStackProps, a *APIStackProps) {
			makeStrong(s, a)
			s.Replicas, s.Witness = []string{"us-east-2"}, "us-west-2"
		},
		"keys": func(s *TableStackProps, a *APIStackProps) {
			makeStrong(s, a)
			s.KeyARN, s.ReplicaKeyARNs = keyARN, map[string]string{"us-east-2": keyIn("us-east-2"), "us-west-2": keyIn("us-west-2")}
		},
		"the managed key": func(s *TableStackProps, _ *APIStackProps) { s.AWSManagedKey, s.Name = true, "locks" },
		"JWT": func(_ *TableStackProps, a *APIStackProps) {
			a.JWT = &JWT{Issuer: "https://a.example", Audience: []string{"b", "c"}, ScopeClaim: "roles"}
		},
		"a domain and a topic": func(s *TableStackProps, a *APIStackProps) {
			makeStrong(s, a)
			a.Domain, a.AlarmTopicARN = &Domain{"locks.example.com", certificateARN}, "arn:aws:sns:us-east-1:123456789012:alarms"
		},
		"a stage and tracing": func(_ *TableStackProps, a *APIStackProps) { a.Stage, a.Tracing, a.LogRetentionDays = "prod", true, 30 },
		"namespaces":          func(_ *TableStackProps, a *APIStackProps) { a.Namespaces = numbered(maxNamespaces) },
		"a small account": func(_ *TableStackProps, a *APIStackProps) {
			a.Acquire, a.Rest = FunctionProps{Memory: 128, Concurrency: -2}, FunctionProps{Memory: 10_240, Concurrency: -8}
		},
		"restored": func(_ *TableStackProps, a *APIStackProps) {
			a.Rules = restored(time.UnixMilli(1_790_000_000_123))
			a.Rules.MaxTTL, a.Rules.Skew = 2*time.Hour, 5*time.Second
		},
		"throttles": func(_ *TableStackProps, a *APIStackProps) {
			a.Throttles = map[string]Throttle{"": {Rate: 0.5, Burst: 3}}
		},
	} {
		table, api := synth(t, c)
		write(name+" table", table)
		write(name+" API", api)
	}
	_, sweeper := strong()
	write("sweeper", sweeper)
	// By name, as its own first line has the directory in which it was unfinished.
	args := []string{filepath.Join(filepath.Dir(python), "cfn-lint"), "--non-zero-exit-code", "informational", "--include-checks", "W", "E"}
	for rule := range unfollowed {
		args = append(args, "--ignore-checks", rule)
	}
	out, err := exec.CommandContext(t.Context(), python, append(append(args, "--"), files...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
