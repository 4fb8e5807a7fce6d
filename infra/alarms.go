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
	once := func(name, description string) watch { return watch{name, description, s.counted(name), 1, 1, 1, false} }
	often := func(id, description string, part, all awscloudwatch.IMetric) watch {
		return watch{id, description, percent(part, all), share, shareIn, ofAll, false}
	}
	sum := statistic("Sum")
	for _, w := range []watch{
		once(metrics.CameBackLate, cameBack),
		once(metrics.ReleasedLate, releasedLate),
		once(metrics.ClockSkew, "Calls were refused because a function's clock and the gateway's differ, or a function was frozen."),
		once(metrics.Misconfigured, "DynamoDB refuses what the service asks: a missing table, permission or key. "+
			"The functions' logs have the reason."),
		once(metrics.Panicked, "The service has a bug that broke off a call, whose outcome is unknown. "+
			"The functions' logs have the stack: \"handler panicked\"."),
		often(metrics.Unavailable, "DynamoDB does not answer: locks cannot be had. Holders work on until their leases end.",
			s.counted(metrics.Unavailable), calls),
		often(metrics.Unknown, "DynamoDB left changes without an answer. Callers repeat them safely; "+
			"if it lasts, locks are not available.", s.counted(metrics.Unknown), calls),
		often("TableThrottled", "DynamoDB throttles. One lock takes about 1,000 writes a second.", s.counted(metrics.Throttled), calls),
		often(metrics.TurnedAway, "The gateway refuses calls with 429: there are more than the throttles let in. "+
			"They have not taken effect, and callers try again. The throttles grow with the concurrency of the functions.",
			s.counted(metrics.TurnedAway), requests),
		often("ServerErrors", "Calls are answered with a 5xx: see the other alarms for why. If none rings, the gateway does not "+
			"reach a function: its access log has the reason. In a quarantine after a restore this is expected.",
			s.gateway("5xx", "Sum"), requests),
		{"AcquireErrors", failed, s.Acquire.MetricErrors(sum), 1, 1, 1, false},
		{"RestErrors", failed, s.Rest.MetricErrors(sum), 1, 1, 1, false},
		{"AcquireThrottles", throttled, s.Acquire.MetricThrottles(sum), 1, 1, 1, false},
		{"RestThrottles", throttled + " Renewals may come too late.", s.Rest.MetricThrottles(sum), 1, 1, 1, false},
		{"Latency", "Of the calls that do not wait, one in a hundred takes a second or more.",
			s.Rest.MetricDuration(statistic("p99")), 1000, 3, 3, false},
	} {
		s.Alarms[w.id] = newAlarm(s.Construct, w, props.AlarmTopicARN)
	}
}

const (
	cameBack = "A holder renewed or released after it had lost its lease: it worked on without one until then. " +
		"Storage that checks tokens has refused its writes; other storage may have taken them. " +
		"See the saved query who-came-back-late. After a break this is expected once: so the holder of the broken lease learns of it."
	releasedLate = "A holder released after its lease had run out, and nobody had taken the lock yet: the TTL is too short " +
		"for its work, or it was paused. The next time another may be in between. See the saved query who-came-back-late."
	failed    = "A function crashed, could not start, or ran into its time limit."
	throttled = "All concurrency of a function was in use: callers got a 5xx, which leaves open what has become of the call."
)

func newAlarm(scope constructs.Construct, w watch, topicARN string) awscloudwatch.Alarm {
	compare := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD
	missing := awscloudwatch.TreatMissingData_NOT_BREACHING // nobody called
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
func percent(part, all awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression:   jsii.String("100 * part / all"),
		Label:        jsii.String("in percent"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{"part": part, "all": all},
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
