package routes

import (
	"strings"
	"testing"
	"time"
)

func TestTheDeployedRoutesAreThoseOfTheTemplate(t *testing.T) {
	all, err := Deployed()
	if err != nil {
		t.Fatal(err)
	}
	functions := make(map[string]int)
	for _, r := range all {
		functions[r.ID]++
		if public := strings.HasSuffix(r.Key, " /healthz") || r.Key == "GET /v1/openapi.json"; r.Public != public {
			t.Errorf("%s is public: %v", r.Key, r.Public)
		}
		timeout := 10 * time.Second
		if strings.HasSuffix(r.Key, "/acquire") {
			timeout = 29 * time.Second
		}
		if r.Timeout != timeout || r.Concurrency != 100 || r.Burst < 1 || r.Burst > 100 || r.Rate < 1 {
			t.Errorf("%+v", r)
		}
	}
	if len(all) < 8 || len(functions) != 2 {
		t.Errorf("got %d routes to %v", len(all), functions)
	}
}

func TestATemplateThatIsNotUnderstoodIsAnError(t *testing.T) {
	const good = `{"Resources": {
		"R": {"Type": "AWS::ApiGatewayV2::Route", "Properties": {"RouteKey": "GET /", "AuthorizationType": "NONE",
			"Target": {"Fn::Join": ["", ["integrations/", {"Ref": "I"}]]}}},
		"I": {"Type": "AWS::ApiGatewayV2::Integration", "Properties": {"IntegrationUri": {"Fn::GetAtt": ["F", "Arn"]}}},
		"S": {"Type": "AWS::ApiGatewayV2::Stage", "Properties": {"RouteSettings": {"GET /": {"ThrottlingRateLimit": 0.5, "ThrottlingBurstLimit": 2}}}},
		"F": {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 3}}}}`
	if all, err := Read([]byte(good)); err != nil || len(all) != 1 || all[0] != (Route{"GET /", true, Throttle{0.5, 2}, Function{"F", 3 * time.Second, 0}}) {
		t.Fatalf("got %+v, %v", all, err)
	}
	for name, change := range map[string][2]string{
		"no JSON":              {`{"Resources"`, `{`},
		"no target":            {`"Target"`, `"Aim"`},
		"no such integration":  {`{"Ref": "I"}`, `{"Ref": "J"}`},
		"a fixed integration":  {`{"Ref": "I"}`, `"I"`},
		"a function elsewhere": {`{"Fn::GetAtt": ["F", "Arn"]}`, `{"Fn::ImportValue": "F"}`},
		"not a function":       {`AWS::Lambda::Function`, `AWS::Lambda::Alias`},
		"no throttle":          {`{"GET /": {`, `{"GET /x": {`},
		"no time limit":        {`{"Timeout": 3}`, `{"Timeout": "long"}`},
	} {
		if all, err := Read([]byte(strings.Replace(good, change[0], change[1], 1))); err == nil {
			t.Errorf("%s: got %+v", name, all)
		}
	}
}
