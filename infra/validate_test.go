package infra

import (
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// The CDK's own validator knows the schema of every resource. It is strict here,
// about warnings too, and nowhere else: it takes seconds.
func TestTheTemplatesAreValidCloudFormation(t *testing.T) {
	context := Flags()
	context["@aws-cdk/core:validateAgainstDefaultRules"] = true
	context["@aws-cdk/core:strictCfnValidateErrors"] = true
	app := awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false), Context: &context})
	stacks(awscdk.NewStage(app, jsii.String("Default"), nil), nil)
	stacks(awscdk.NewStage(app, jsii.String("Options"), nil), func(s *TableStackProps, a *APIStackProps) {
		makeStrong(s, a)
		s.KeyARN, s.ReplicaKeyARNs = keyARN, map[string]string{"us-east-2": keyIn("us-east-2"), "us-west-2": keyIn("us-west-2")}
		a.JWT = &JWT{Issuer: "https://a.example", Audience: []string{"b"}}
		a.Domain = &Domain{"locks.example.com", "arn:aws:acm:us-east-1:123456789012:certificate/00000000-0000-4000-8000-000000000000"}
		a.Stage, a.Tracing, a.AlarmTopicARN = "prod", true, "arn:aws:sns:us-east-1:123456789012:alarms"
	})
	sweeping(awscdk.NewStage(app, jsii.String("Swept"), nil), nil)
	if reason := refused(func() { app.Synth(nil) }); reason != "" {
		t.Error(reason)
	}
}
