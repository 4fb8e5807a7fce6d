package infra

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// sweeperKey is the item in which the sweeper keeps its place. The key of a lock
// always has a "#".
const sweeperKey = "sweeper"

// SweeperProps describe the sweeper.
type SweeperProps struct {
	// Table has the locks; see [NewTable]. Required.
	Table awsdynamodb.ITableV2

	// Code is the directory with the compiled function: dist/sweeper after
	// "make build". Required.
	Code string

	// Every is the time from run to run, in whole minutes, at least 15. Zero means
	// an hour.
	Every time.Duration

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
	every := props.Every
	if every == 0 {
		every = time.Hour
	}
	switch {
	case props.Table == nil || props.Code == "":
		must(errors.New("infra: a sweeper needs its Table and its Code, see make build"))
	case every%time.Minute != 0 || every < 15*time.Minute:
		must(fmt.Errorf("infra: the sweeper is to run every %v, want whole minutes, and more than its limit of 14", every))
	}
	self := constructs.NewConstruct(scope, jsii.String(id))
	f := newFunction(self, "Function", function{
		FunctionProps: FunctionProps{Memory: 256, Concurrency: 1}, // two would keep one place
		description:   "Pawl: retires idle locks",
		code:          props.Code,
		timeout:       14 * time.Minute,
		env:           map[string]string{"TABLE": *props.Table.TableName()},
		retention:     props.LogRetentionDays,
	})
	allowTable(f, props.Table, nil, "dynamodb:DeleteItem", "dynamodb:Scan")
	allowTable(f, props.Table, map[string]any{
		"ForAllValues:StringEquals": map[string]any{"dynamodb:LeadingKeys": []string{sweeperKey}},
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
	newAlarm(self, watch{"Errors", "The sweeper fails: idle locks stay in the table and are paid for. Nothing else depends on it.",
		f.MetricErrors(statistic("Sum")), 1, 1}, props.AlarmTopicARN)
	return f
}
