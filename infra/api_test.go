package infra

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

func TestTheRoutesAreTheSpecAndAllButThreeAskWhoCalls(t *testing.T) {
	_, iam := defaults()
	for authorization, x := range map[string]template{"AWS_IAM": iam, "JWT": underJWT()} {
		all, public := httplease.Routes()
		var keys []string
		for _, r := range x.of("AWS::ApiGatewayV2::Route") {
			key := r["RouteKey"].(string)
			keys = append(keys, key)
			want := authorization
			if slices.Contains(public, key) {
				want = "NONE"
			}
			if r["AuthorizationType"] != want {
				t.Errorf("%s: authorization of %s is %v, want %s", authorization, key, r["AuthorizationType"], want)
			}
			if (r["AuthorizerId"] != nil) != (want == "JWT") || r["AuthorizationScopes"] != nil {
				t.Errorf("%s: %s has authorizer %v, scopes %v", authorization, key, r["AuthorizerId"], r["AuthorizationScopes"])
			}
		}
		slices.Sort(keys)
		slices.Sort(all)
		if !slices.Equal(keys, all) || len(public) != 3 {
			t.Errorf("%s: routes %q, want %q", authorization, keys, all)
		}
	}
	_, a := underJWT().one(t, "AWS::ApiGatewayV2::Authorizer")
	if got := fmt.Sprint(a["AuthorizerType"], a["JwtConfiguration"], a["IdentitySource"]); got !=
		"JWTmap[Audience:[pawl] Issuer:https://issuer.example] [$request.header.Authorization]" {
		t.Errorf("got authorizer %s", got)
	}
}

func TestWaitersHaveAFunctionOfTheirOwn(t *testing.T) {
	_, x := defaults()
	seen := make(map[string]bool)
	for id, f := range x.of("AWS::Lambda::Function") {
		acquire := strings.Contains(id, "Acquire")
		seen[id] = acquire
		timeout := map[bool]float64{true: 29, false: 10}[acquire]
		if f["Timeout"] != timeout || f["ReservedConcurrentExecutions"] != 100.0 || f["MemorySize"] != 256.0 {
			t.Errorf("%s: %v s, %v at a time, %v MB", id, f["Timeout"], f["ReservedConcurrentExecutions"], f["MemorySize"])
		}
		if f["Runtime"] != "provided.al2023" || f.at("Architectures", 0) != "arm64" || f["Handler"] != "bootstrap" {
			t.Errorf("%s: runs as %v, %v, %v", id, f["Runtime"], f["Architectures"], f["Handler"])
		}
		env := f.at("Environment", "Variables").(map[string]any)
		if len(env) != 1 || !strings.HasPrefix(fmt.Sprint(resolve(env["TABLE"])), "<PawlTable:") {
			t.Errorf("%s: environment %v", id, env)
		}
	}
	if len(seen) != 2 {
		t.Errorf("got functions %v", seen)
	}
	for _, i := range x.of("AWS::ApiGatewayV2::Integration") {
		if i["PayloadFormatVersion"] != "2.0" { // the only one that package apigw reads
			t.Errorf("payload format %v", i["PayloadFormatVersion"])
		}
	}
}

func TestTheParametersReachTheFunctions(t *testing.T) {
	_, x := synth(t, func(_ *TableStackProps, a *APIStackProps) {
		a.Rules = lease.Rules{
			MaxTTL: 2 * time.Hour, MaxLockDelay: 30 * time.Second, Skew: 1500 * time.Millisecond,
			RestoredAt: time.UnixMilli(1_700_000_000_123), QuarantineEnd: time.UnixMilli(1_700_080_000_123),
		}
		a.Acquire = FunctionProps{Memory: 512, Concurrency: 7}
		a.Rest = FunctionProps{Memory: 128, Concurrency: -1}
		a.LogRetentionDays = 30
		a.Tracing = true
		a.AlarmTopicARN = "arn:aws:sns:us-east-1:123456789012:alarms"
	})
	for id, f := range x.of("AWS::Lambda::Function") {
		env := maps.Clone(f.at("Environment", "Variables").(map[string]any))
		delete(env, "TABLE")
		want := map[string]any{"MAX_TTL_MS": "7200000", "MAX_LOCK_DELAY_MS": "30000", "SKEW_MS": "1500", "RESTORED_AT_MS": "1700000000123"}
		if !maps.Equal(env, want) {
			t.Errorf("%s: got %v, want %v", id, env, want)
		}
		size := [2]any{f["MemorySize"], f["ReservedConcurrentExecutions"]}
		if want := map[bool][2]any{true: {512.0, 7.0}, false: {128.0, nil}}[strings.Contains(id, "Acquire")]; size != want {
			t.Errorf("%s: got %v, want %v", id, size, want)
		}
		if f.at("TracingConfig", "Mode") != "Active" {
			t.Errorf("%s: tracing %v", id, f["TracingConfig"])
		}
	}
	logs := x.of("AWS::Logs::LogGroup")
	for id, l := range logs {
		if l["RetentionInDays"] != 30.0 {
			t.Errorf("%s is kept for %v days", id, l["RetentionInDays"])
		}
	}
	if len(logs) != 3 {
		t.Errorf("got %d logs, want one for each function and one for the gateway", len(logs))
	}
	for id, a := range x.of("AWS::CloudWatch::Alarm") {
		if a.at("AlarmActions", 0) != "arn:aws:sns:us-east-1:123456789012:alarms" {
			t.Errorf("nobody hears of %s: %v", id, a["AlarmActions"])
		}
	}
}

func TestEveryRouteIsThrottledAndWhatIsOpenToAllTheMost(t *testing.T) {
	_, x := synth(t, func(_ *TableStackProps, a *APIStackProps) {
		a.Throttles = map[string]Throttle{"POST /v1/{namespace}/renew": {Rate: 2000, Burst: 900}}
	})
	id, stage := x.one(t, "AWS::ApiGatewayV2::Stage")
	if got := fmt.Sprint(stage["DefaultRouteSettings"]); got != "map[ThrottlingBurstLimit:500 ThrottlingRateLimit:1000]" {
		t.Errorf("by default: %s", got)
	}
	want := map[string]string{
		"POST /v1/{namespace}/acquire": "250 500", "POST /v1/{namespace}/renew": "900 2000", "POST /v1/{namespace}/break": "10 5",
		"GET /v1/openapi.json": "10 5", "GET /healthz": "10 5", "HEAD /healthz": "10 5",
	}
	got := make(map[string]string)
	for key, s := range stage.at("RouteSettings").(map[string]any) {
		s := s.(map[string]any)
		got[key] = fmt.Sprint(s["ThrottlingBurstLimit"], s["ThrottlingRateLimit"])
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	depends := fmt.Sprint(x["Resources"].(map[string]any)[id].(map[string]any)["DependsOn"])
	for route := range x.of("AWS::ApiGatewayV2::Route") {
		if !strings.Contains(depends, route) {
			t.Errorf("the stage can be made before %s, which it has settings for", route)
		}
	}
}

func TestTheAccessLogSaysWhoCalled(t *testing.T) {
	_, iam := defaults()
	for caller, x := range map[string]template{"$context.identity.userArn": iam, "$context.authorizer.claims.sub": underJWT()} {
		_, stage := x.one(t, "AWS::ApiGatewayV2::Stage")
		var line map[string]string
		if err := json.Unmarshal([]byte(stage.at("AccessLogSettings", "Format").(string)), &line); err != nil {
			t.Fatal(err)
		}
		if line["caller"] != caller || line["route"] != "$context.routeKey" || line["status"] != "$context.status" {
			t.Errorf("got %v", line)
		}
		if stage.at("AccessLogSettings", "DestinationArn") == nil {
			t.Error("the access log goes nowhere")
		}
	}
}

func TestADomainIsTheOnlyWayIn(t *testing.T) {
	_, x := synth(t, func(_ *TableStackProps, a *APIStackProps) {
		a.Domain = &Domain{Name: "locks.example.com", CertificateARN: "arn:aws:acm:us-east-1:123456789012:certificate/1"}
	})
	_, domain := x.one(t, "AWS::ApiGatewayV2::DomainName")
	_, mapping := x.one(t, "AWS::ApiGatewayV2::ApiMapping")
	_, api := x.one(t, "AWS::ApiGatewayV2::Api")
	if domain["DomainName"] != "locks.example.com" || mapping["ApiMappingKey"] != nil || api["DisableExecuteApiEndpoint"] != true {
		t.Errorf("got %v, %v, %v", domain, mapping, api)
	}
	if got := x.output("URL"); got != "https://locks.example.com" {
		t.Errorf("the URL is %v", got)
	}
	if x.output("DomainTarget") == nil {
		t.Error("nothing says what the DNS record points to")
	}
}

func TestTheURLIsThatOfTheStage(t *testing.T) {
	_, x := defaults()
	api, _ := x.one(t, "AWS::ApiGatewayV2::Api")
	if got := x.output("URL"); got != "<"+api+".ApiEndpoint>" {
		t.Errorf("got %v", got)
	}
	_, x = synth(t, func(_ *TableStackProps, a *APIStackProps) { a.Stage = "prod" })
	if got := x.output("URL"); got != "<"+api+".ApiEndpoint>/prod" {
		t.Errorf("got %v", got)
	}
}

// output returns the value of an output, or nil.
func (x template) output(id string) any {
	o, _ := x["Outputs"].(map[string]any)[id].(map[string]any)
	return resolve(o["Value"])
}
