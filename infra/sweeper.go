package infra

import (
	"cmp"
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/functions/metrics"
	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// SweeperProps describe the sweeper.
type SweeperProps struct {
	// Table has the locks; see [NewTable]. Required.
	Table awsdynamodb.ITableV2

	// Code is the directory with the compiled function: dist/sweeper after
	// "make build". Required.
	Code string

	// Every is the time from run to run, in whole minutes: 15 minutes to 12 hours.
	// Zero means an hour. Rate is how many requests a run sends in a second, 1 to
	// 10000. Zero means 50.
	//
	// A run takes almost 14 minutes at most, so that Rate times 830 locks can be
	// retired in it: a million a day by default. That
	// must be more than the new locks of a day, or the table grows without end.
	Every time.Duration
	Rate  float64

	// LogRetentionDays is how long logs are kept: one of the numbers that
	// CloudWatch knows. Zero means 90.
	LogRetentionDays int

	// AlarmTopicARN is the SNS topic that hears when the sweeper fails. Empty
	// means that it can only be seen.
	AlarmTopicARN string
}

// NewSweeper retires idle locks on a schedule, where DynamoDB's TTL is not
// available. One is enough for all Regions of a table.
func NewSweeper(scope constructs.Construct, id string, props *SweeperProps) awslambda.Function {
	every := cmp.Or(props.Every, time.Hour)
	must(props.validate(region(scope)))
	self := constructs.NewConstruct(scope, jsii.String(id))
	f := newFunction(self, "Function", function{
		FunctionProps: FunctionProps{Memory: 256, Concurrency: 1}, // two would keep one place
		description:   "Pawl: retires idle locks",
		code:          props.Code,
		timeout:       sweeperTimeout,
		env:           settings.Sweeper{Table: *props.Table.TableName(), Metrics: metricsOf(scope), Rate: props.Rate}.Environ(),
		retention:     props.LogRetentionDays,
	})
	allowTable(f, props.Table, nil, "dynamodb:DeleteItem", "dynamodb:Scan")
	allowTable(f, props.Table, map[string]any{
		"ForAllValues:StringEquals": map[string]any{"dynamodb:LeadingKeys": []string{dynamolease.SweeperKey}},
	}, "dynamodb:GetItem", "dynamodb:PutItem")
	allowKey(f, props.Table.EncryptionKey())
	f.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{RetryAttempts: jsii.Number(0)}) // the next run goes on

	rule := awsevents.NewCfnRule(self, jsii.String("Schedule"), &awsevents.CfnRuleProps{
		Description:        jsii.String("Runs the sweeper of Pawl"),
		ScheduleExpression: jsii.String(fmt.Sprintf("rate(%d minutes)", int(every.Minutes()))),
		Targets:            []any{&awsevents.CfnRule_TargetProperty{Id: jsii.String("Sweeper"), Arn: f.FunctionArn()}},
	})
	f.AddPermission(jsii.String("Schedule"), &awslambda.Permission{
		Principal: awsiam.NewServicePrincipal(jsii.String("events.amazonaws.com"), nil),
		SourceArn: rule.AttrArn(),
	})
	minutes := int(every.Minutes())
	lambda := func(name string) awscloudwatch.IMetric {
		o := statistic("Sum")
		o.Period = awscdk.Duration_Minutes(jsii.Number(minutes))
		return f.Metric(jsii.String(name), o)
	}
	for _, w := range []watch{
		{"Errors", "The sweeper fails" + grows, lambda("Errors"), 1, 1, 1, false},
		{"NotRunning", "The sweeper does not run" + grows + " Is its schedule there, and enabled?",
			lambda("Invocations"), 1, 2, 2, true},
		{"Behind", "The sweeper has not come through the table for a day" + grows +
			" Let it run more often, or send more requests: see SweeperProps.",
			measured(scope, metrics.PassAge, "Maximum", minutes), 24 * 60, 1, 1, false},
	} {
		newAlarm(self, w, props.AlarmTopicARN)
	}
	return f
}

const (
	sweeperTimeout = 14 * time.Minute
	grows          = ": idle locks stay in the table and are paid for. Nothing else depends on it."
)

// validate checks the configuration in the Region home, which is "" if it is not
// known yet.
func (p *SweeperProps) validate(home string) error {
	var e errorsIn
	if p.Table == nil {
		e.add(wrong("Table", "a sweeper needs its table"))
	}
	if p.Code == "" {
		e.add(wrong("Code", "a sweeper needs its code, see make build"))
	}
	if p.Every != 0 && (p.Every%time.Minute != 0 || p.Every < 15*time.Minute || p.Every > 12*time.Hour) {
		e.add(wrong("Every", "is %v, want whole minutes from 15 to 720: a run takes up to 14", p.Every))
	}
	if p.Rate != 0 && !(p.Rate >= 1 && p.Rate <= 10_000) { // NaN is not
		e.add(wrong("Rate", "is %v requests a second, want 1 to 10000", p.Rate))
	}
	e.retention(p.LogRetentionDays)
	e.arn("AlarmTopicARN", p.AlarmTopicARN, topic, home)
	return e.err()
}
