package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// A watch is one alarm: on this metric, at or above this value, in each of so
// many periods of five minutes.
type watch struct {
	id, description string
	metric          awscloudwatch.IMetric
	threshold       float64
	periods         int
}

// addAlarms watches what the service promises. The descriptions are for whoever
// is woken up.
func (s *LockService) addAlarms(props *LockServiceProps) {
	s.Alarms = make(map[string]awscloudwatch.Alarm)
	for _, w := range []watch{
		{"CameBackLate", "A holder renewed or released after it had lost its lease: it worked on without one until then. " +
			"Storage that checks tokens has refused its writes; other storage may have taken them. See the saved query who-came-back-late.",
			counted("CameBackLate"), 1, 1},
		{"ClockSkew", "Calls were refused because a function's clock and the gateway's differ, or a function was frozen.",
			counted("ClockSkew"), 1, 1},
		{"Misconfigured", "DynamoDB refuses what the service asks: a missing table, permission or key. The functions' logs have the reason.",
			counted("Misconfigured"), 1, 1},
		{"Unknown", "DynamoDB left changes without an answer. Callers repeat them safely; if it lasts, locks are not available.",
			counted("Unknown"), 10, 1},
		{"TableThrottled", "DynamoDB throttles. One lock takes about 1,000 writes a second.",
			counted("Throttled"), 10, 1},
		{"FunctionErrors", "A function crashed or ran into its time limit.",
			s.both("Errors"), 1, 1},
		{"FunctionThrottles", "All reserved concurrency of a function was in use: callers got a 5xx, and renewals may come too late.",
			s.both("Throttles"), 1, 1},
		{"ServerErrors", "Calls were answered with a 5xx.",
			s.gateway("5xx", "Sum"), 10, 1},
		{"Latency", "Of the calls that do not wait, one in a hundred takes a second or more.",
			s.Rest.MetricDuration(statistic("p99")), 1000, 3},
	} {
		s.Alarms[w.id] = newAlarm(s.Construct, w, props.AlarmTopicARN)
	}
}

func newAlarm(scope constructs.Construct, w watch, topicARN string) awscloudwatch.Alarm {
	a := awscloudwatch.NewAlarm(scope, jsii.String(w.id+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmDescription:   jsii.String(w.description),
		Metric:             w.metric,
		Threshold:          jsii.Number(w.threshold),
		EvaluationPeriods:  jsii.Number(w.periods),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING, // nobody called
	})
	if topicARN != "" {
		// Package awscloudwatchactions would do no more, and takes long to build.
		a.Node().DefaultChild().(awscloudwatch.CfnAlarm).SetAlarmActions(&[]*string{&topicARN})
	}
	return a
}

// counted is a metric that the functions write with their logs; see
// functions/api.
func counted(name string) awscloudwatch.IMetric { return measured(name, "Sum") }

func measured(name, stat string) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace:  jsii.String("Pawl"),
		MetricName: jsii.String(name),
		Statistic:  jsii.String(stat),
		Period:     awscdk.Duration_Minutes(jsii.Number(5)),
	})
}

func statistic(stat string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(stat), Period: awscdk.Duration_Minutes(jsii.Number(5))}
}

func (s *LockService) gateway(name, stat string) awscloudwatch.IMetric {
	return s.API.Metric(jsii.String(name), statistic(stat))
}

// both adds up a metric of the two functions.
func (s *LockService) both(name string) awscloudwatch.IMetric {
	// One graph may show several sums, in which ids must differ.
	acquire, rest := "acquire"+name, "rest"+name
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(acquire + " + " + rest),
		Label:      jsii.String("Function" + name),
		UsingMetrics: &map[string]awscloudwatch.IMetric{
			acquire: s.Acquire.Metric(jsii.String(name), statistic("Sum")),
			rest:    s.Rest.Metric(jsii.String(name), statistic("Sum")),
		},
		Period: awscdk.Duration_Minutes(jsii.Number(5)),
	})
}
