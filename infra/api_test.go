package infra

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/infra/routes"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
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
		if len(env) != 3 || env["AUTH"] != "iam" || env["METRICS"] != "Pawl/Pawl" || !strings.HasPrefix(fmt.Sprint(resolve(env["TABLE"])), "<PawlTable:") {
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
		a.Rules = protocol.Rules{
			MaxTTL: 2 * time.Hour, MaxLockDelay: 30 * time.Second, Skew: 1500 * time.Millisecond,
			RestoredAt: time.UnixMilli(1_700_000_000_123), QuarantineEnd: time.UnixMilli(1_700_080_000_123),
		}
		a.Acquire = FunctionProps{Memory: 512, Concurrency: 7}
		a.Rest = FunctionProps{Memory: 128, Concurrency: -9}
		a.LogRetentionDays = 30
		a.Tracing = true
		a.AlarmTopicARN = "arn:aws:sns:us-east-1:123456789012:alarms"
	})
	for id, f := range x.of("AWS::Lambda::Function") {
		env := maps.Clone(f.at("Environment", "Variables").(map[string]any))
		for _, name := range []string{"TABLE", "AUTH", "METRICS"} {
			delete(env, name)
		}
		want := map[string]any{"MAX_TTL_MS": "7200000", "MAX_LOCK_DELAY_MS": "30000", "SKEW_MS": "1500", "RESTORED_AT_MS": "1700000000123", "QUARANTINE_END_MS": "1700080000123"}
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
		// A creation that is rolled back must not leave what the next one meets.
		if r := x["Resources"].(map[string]any)[id].(map[string]any); r["DeletionPolicy"] != "RetainExceptOnCreate" || r["UpdateReplacePolicy"] != "Retain" {
			t.Errorf("%s: %v, %v", id, r["DeletionPolicy"], r["UpdateReplacePolicy"])
		}
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

// What is more than a function answers at a time, Lambda refuses with a 5xx: it
// leaves open what has become of the call. The gateway's 429 does not, so that it
// must come first.
func TestNoBurstIsMoreThanTheFunctionBehindItsRoutesAnswers(t *testing.T) {
	for name, change := range map[string]func(a *APIStackProps){
		"by default":    func(*APIStackProps) {},
		"large":         func(a *APIStackProps) { a.Acquire.Concurrency, a.Rest.Concurrency = 1000, 900 },
		"a new account": func(a *APIStackProps) { a.Acquire.Concurrency, a.Rest.Concurrency = -2, -8 },
		"a set throttle": func(a *APIStackProps) {
			a.Throttles = map[string]Throttle{"POST /v1/{namespace}/renew": {Rate: 400, Burst: 60}}
		},
		"throttles of all": func(a *APIStackProps) { a.Throttles = map[string]Throttle{"": {Rate: 1, Burst: 2}} },
	} {
		var props APIStackProps
		_, x := synth(t, func(_ *TableStackProps, a *APIStackProps) { change(a); props = *a })
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		all, err := routes.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		bursts := make(map[string]int)
		for _, r := range all {
			bursts[r.ID] += r.Throttle.Burst
			// At this rate there are as many calls under way as the burst has, if each takes so long.
			if at := time.Duration(float64(r.Throttle.Burst) / r.Throttle.Rate * float64(time.Second)); r.Throttle.Burst < 1 || props.Throttles == nil && at < 100*time.Millisecond {
				t.Errorf("%s: %s lets in %+v: calls must take %v", name, r.Key, r.Throttle, at)
			}
			if renew := "POST /v1/{namespace}/renew"; r.Key == renew && props.Throttles[renew].Burst != 0 && r.Throttle.Burst != 60 {
				t.Errorf("%s: %s lets in %+v", name, r.Key, r.Throttle)
			}
		}
		for id, sum := range bursts {
			limit := props.Rest.concurrent()
			if strings.Contains(id, "Acquire") {
				limit = props.Acquire.concurrent()
			}
			if sum > limit || props.Throttles == nil && sum < limit/2 {
				t.Errorf("%s: the routes to %s take bursts of %d, and it answers %d at a time", name, id, sum, limit)
			}
		}
		if len(bursts) != 2 {
			t.Errorf("%s: %v", name, bursts)
		}
	}
}

func TestTheStageWaitsForTheRoutesThatItHasSettingsFor(t *testing.T) {
	_, x := defaults()
	id, _ := x.one(t, "AWS::ApiGatewayV2::Stage")
	depends := fmt.Sprint(x["Resources"].(map[string]any)[id].(map[string]any)["DependsOn"])
	for route := range x.of("AWS::ApiGatewayV2::Route") {
		if !strings.Contains(depends, route) {
			t.Errorf("the stage can be made before %s", route)
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
		// Elsewhere AWS adds each log to the account's resource policy, which is full after a few.
		id, _ := resolve(stage.at("AccessLogSettings", "DestinationArn")).(string)
		name := fmt.Sprint(resolve(x.of("AWS::Logs::LogGroup")[strings.Trim(strings.TrimSuffix(id, ".Arn>"), "<")]["LogGroupName"]))
		if !strings.HasPrefix(name, "/aws/vendedlogs/pawl/Pawl/") || !strings.Contains(name, "AWS::StackId") {
			t.Errorf("the access log is %s, called %q", id, name)
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
