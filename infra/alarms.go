package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/functions/metrics"
)

// A watch is one alarm: on a metric that is at or above a threshold, or below
// it, in so many of the last periods.
type watch struct {
	id, description string
	metric          awscloudwatch.IMetric
	threshold       float64
	in, of          int  // periods
	below           bool // then a period without the metric is one below, too
}

// Of what happens to some calls now and then, an alarm is for a share of them: it
// is the same at one call a minute and at a thousand a second. Two periods of
// three keep single failures of a small deployment from waking anybody.
const (
	share          = 5.0 // percent
	shareIn, ofAll = 2, 3
)

// addAlarms watches what the service promises. The descriptions are for whoever
// is woken up.
func (s *LockService) addAlarms(props *LockServiceProps) {
	s.Alarms = make(map[string]awscloudwatch.Alarm)
	calls, requests := s.measured(metrics.Time, "SampleCount"), s.gateway("Count", "Sum")
	for _, w := range []watch{
		{metrics.CameBackLate, "A holder renewed or released after it had lost its lease: it worked on without one until then. " +
			"Storage that checks tokens has refused its writes; other storage may have taken them. See the saved query who-came-back-late. " +
			"After a break this is expected once: so the holder of the broken lease learns of it.",
			s.counted(metrics.CameBackLate), 1, 1, 1, false},
		{metrics.ReleasedLate, "A holder released after its lease had run out, and nobody had taken the lock yet: the TTL is too short for its work, " +
			"or it was paused. The next time another may be in between. See the saved query who-came-back-late.",
			s.counted(metrics.ReleasedLate), 1, 1, 1, false},
		{metrics.ClockSkew, "Calls were refused because a function's clock and the gateway's differ, or a function was frozen.",
			s.counted(metrics.ClockSkew), 1, 1, 1, false},
		{metrics.Misconfigured, "DynamoDB refuses what the service asks: a missing table, permission or key. The functions' logs have the reason.",
			s.counted(metrics.Misconfigured), 1, 1, 1, false},
		{metrics.Panicked, "The service has a bug that broke off a call, whose outcome is unknown. The functions' logs have the stack: \"handler panicked\".",
			s.counted(metrics.Panicked), 1, 1, 1, false},
		{metrics.Unavailable, "DynamoDB does not answer: locks cannot be had. Holders work on until their leases end.",
			percent("unavailable", s.counted(metrics.Unavailable), calls), share, shareIn, ofAll, false},
		{metrics.Unknown, "DynamoDB left changes without an answer. Callers repeat them safely; if it lasts, locks are not available.",
			percent("unknown", s.counted(metrics.Unknown), calls), share, shareIn, ofAll, false},
		{"TableThrottled", "DynamoDB throttles. One lock takes about 1,000 writes a second.",
			percent("throttled", s.counted(metrics.Throttled), calls), share, shareIn, ofAll, false},
		{metrics.TurnedAway, "The gateway refuses calls with 429: there are more than the throttles let in. Callers try again, and get later what they ask for; " +
			"the throttles grow with the concurrency of the functions.",
			percent("turned", s.counted(metrics.TurnedAway), requests), share, shareIn, ofAll, false},
		{"ServerErrors", "Calls are answered with a 5xx: see the other alarms for why. If there is none, the gateway does not reach a function: its access log has the reason. " +
			"In a quarantine after a restore this is expected.",
			percent("failed", s.gateway("5xx", "Sum"), requests), share, shareIn, ofAll, false},
		{"AcquireErrors", failed, s.Acquire.MetricErrors(statistic("Sum")), 1, 1, 1, false},
		{"RestErrors", failed, s.Rest.MetricErrors(statistic("Sum")), 1, 1, 1, false},
		{"AcquireThrottles", throttled, s.Acquire.MetricThrottles(statistic("Sum")), 1, 1, 1, false},
		{"RestThrottles", throttled + " Renewals may come too late.", s.Rest.MetricThrottles(statistic("Sum")), 1, 1, 1, false},
		{"Latency", "Of the calls that do not wait, one in a hundred takes a second or more.",
			s.Rest.MetricDuration(statistic("p99")), 1000, 3, 3, false},
	} {
		s.Alarms[w.id] = newAlarm(s.Construct, w, props.AlarmTopicARN)
	}
}

const (
	failed    = "A function crashed, could not start, or ran into its time limit."
	throttled = "All concurrency of a function was in use: callers got a 5xx, which leaves open what has become of the call."
)

func newAlarm(scope constructs.Construct, w watch, topicARN string) awscloudwatch.Alarm {
	compare, missing := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD, awscloudwatch.TreatMissingData_NOT_BREACHING // nobody called
	if w.below {
		compare, missing = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, awscloudwatch.TreatMissingData_BREACHING
	}
	a := awscloudwatch.NewAlarm(scope, jsii.String(w.id+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmDescription:   jsii.String(w.description),
		Metric:             w.metric,
		Threshold:          jsii.Number(w.threshold),
		DatapointsToAlarm:  jsii.Number(w.in),
		EvaluationPeriods:  jsii.Number(w.of),
		ComparisonOperator: compare,
		TreatMissingData:   missing,
	})
	if topicARN != "" {
		// Package awscloudwatchactions would do no more, and takes long to build.
		a.Node().DefaultChild().(awscloudwatch.CfnAlarm).SetAlarmActions(&[]*string{&topicARN})
	}
	return a
}

// percent is a share, in each period that has both: nothing is missing where
// something failed, since what failed was counted. A sum of two series would have
// no value as long as one of them has none.
func percent(id string, part, all awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression:   jsii.String("100 * " + id + " / all"),
		Label:        jsii.String(id + ", in percent"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{id: part, "all": all},
		Period:       awscdk.Duration_Minutes(jsii.Number(period)),
	})
}

// period is that of all metrics that have no other, in minutes.
const period = 5

// counted is a metric that the functions write with their logs.
func (s *LockService) counted(name string) awscloudwatch.IMetric { return s.measured(name, "Sum") }

func (s *LockService) measured(name, stat string) awscloudwatch.IMetric {
	return measured(s.Construct, name, stat, period)
}

func measured(scope constructs.Construct, name, stat string, minutes int) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace:  jsii.String(metricsOf(scope)),
		MetricName: jsii.String(name),
		Statistic:  jsii.String(stat),
		Period:     awscdk.Duration_Minutes(jsii.Number(minutes)),
	})
}

func statistic(stat string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(stat), Period: awscdk.Duration_Minutes(jsii.Number(period))}
}

func (s *LockService) gateway(name, stat string) awscloudwatch.IMetric {
	return s.API.Metric(jsii.String(name), statistic(stat))
}
