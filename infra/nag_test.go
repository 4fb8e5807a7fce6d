package infra

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// accepted are the findings that are not followed, each on one resource, and why.
var accepted = func() (all []struct{ path, id, reason string }) {
	add := func(id, reason string, paths ...string) {
		for _, path := range paths {
			all = append(all, struct{ path, id, reason string }{path, id, reason})
		}
	}
	functions := []string{"/Pawl/Lock/Acquire/Resource", "/Pawl/Lock/Rest/Resource"}
	const sweeper = "/PawlSweeper/Sweeper/Function/Resource"
	add("Serverless-LambdaDLQ", "API Gateway calls it and waits: there is no event to keep, and the caller learns of each failure", functions...)
	add("Serverless-LambdaTracing", "tracing is a parameter, off because it is paid by the call; store_ms in the log tells the time in DynamoDB", functions...)
	add("Serverless-LambdaTracing", "nobody waits for it, and its line in the log tells how long it took", sweeper)
	add("AwsSolutions-APIG4", "public by design: tells that the service is up, and nothing about any lock", "/Pawl/Lock/Api/GET--healthz/Resource", "/Pawl/Lock/Api/HEAD--healthz/Resource")
	add("AwsSolutions-APIG4", "public by design: the published description of the API", "/Pawl/Lock/Api/GET--v1--openapi.json/Resource")
	const again = "a run that failed needs no repeating: the next one goes on at the same place, and an alarm counts failures"
	add("Serverless-LambdaDLQ", again, sweeper)
	add("Serverless-EventBusDLQ", again, "/PawlSweeper/Sweeper/Schedule")
	add("Serverless-LambdaAsyncFailureDestination", again, "/PawlSweeper/Sweeper/Function/EventInvokeConfig/Resource")
	return all
}()

func TestNoFindingOfCDKNagIsLeftWithoutAReason(t *testing.T) {
	both := func(change func(*TableStackProps, *APIStackProps)) func(awscdk.App) []awscdk.Stack {
		return func(app awscdk.App) []awscdk.Stack {
			table, api := stacks(app, change)
			return []awscdk.Stack{table, api}
		}
	}
	for name, make := range map[string]func(awscdk.App) []awscdk.Stack{
		"one Region": both(nil),
		"strong":     both(makeStrong),
		"swept": func(app awscdk.App) []awscdk.Stack {
			table, sweeper := sweeping(app, nil)
			return []awscdk.Stack{table, sweeper}
		},
		"JWT": both(func(_ *TableStackProps, a *APIStackProps) {
			a.JWT = &JWT{Issuer: "https://a.example", Audience: []string{"b"}}
		}),
	} {
		app := newApp()
		stacks := make(app)
		awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(nil), nil)
		awscdk.Aspects_Of(app).Add(cdknag.NewServerlessChecks(nil), nil)
		for _, s := range stacks { // all of them first: looking at one stack synthesizes both
			for _, a := range accepted {
				parts := strings.Split(a.path, "/")
				if parts[1] == *s.StackName() && s.Node().TryFindChild(jsii.String(parts[2])) != nil {
					cdknag.NagSuppressions_AddResourceSuppressionsByPath(s, jsii.String(a.path),
						&[]*cdknag.NagPackSuppression{{Id: jsii.String(a.id), Reason: jsii.String(a.reason)}}, nil)
				}
			}
		}
		for _, s := range stacks {
			found := assertions.Annotations_FromStack(s)
			all, anything := jsii.String("*"), assertions.Match_AnyValue()
			if reason := refused(func() { found.HasNoError(all, anything) }) + refused(func() { found.HasNoWarning(all, anything) }); reason != "" {
				t.Errorf("%s: %s", name, reason)
			}
		}
	}
}
