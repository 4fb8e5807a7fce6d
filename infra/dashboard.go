package infra

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/functions/metrics"
)

// addDashboard answers three questions, a row each: is it healthy, who is
// contended, who keeps losing leases.
func (s *LockService) addDashboard() {
	var alarms []interfacesawscloudwatch.IAlarmRef
	for _, id := range slices.Sorted(maps.Keys(s.Alarms)) {
		alarms = append(alarms, s.Alarms[id])
	}
	d := awscloudwatch.NewDashboard(s.Construct, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DefaultInterval: awscdk.Duration_Hours(jsii.Number(12)),
	})
	row := func(widgets ...awscloudwatch.IWidget) { d.AddWidgets(widgets...) }
	row(title("Is it healthy?"))
	row(
		awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{Alarms: &alarms, Width: jsii.Number(24), Height: jsii.Number(3)}),
	)
	row(
		graph("Calls", s.counted(metrics.Granted), s.counted(metrics.Repeated), s.counted(metrics.Refused),
			s.counted(metrics.Renewed), s.counted(metrics.Released), s.counted(metrics.ReleasedBefore), s.counted(metrics.Broken)),
		graph("Failures", s.gateway("5xx", "Sum"),
			labelled("acquire: Errors", s.Acquire, "Errors", "Sum"), labelled("rest: Errors", s.Rest, "Errors", "Sum"),
			labelled("acquire: Throttles", s.Acquire, "Throttles", "Sum"),
			labelled("rest: Throttles", s.Rest, "Throttles", "Sum"),
			s.counted(metrics.TurnedAway), s.counted(metrics.Throttled), s.counted(metrics.ClockSkew),
			s.counted(metrics.Misconfigured), s.counted(metrics.Unknown), s.counted(metrics.Unavailable),
			s.counted(metrics.Quarantined), s.counted(metrics.Panicked)),
		graph("Time, in ms", s.Rest.MetricDuration(statistic("p50")), s.Rest.MetricDuration(statistic("p99")),
			s.measured(metrics.StoreTime, "p50"), s.measured(metrics.StoreTime, "p99")),
		graph("Calls under way, and DynamoDB requests",
			labelled("acquire", s.Acquire, "ConcurrentExecutions", "Maximum"),
			labelled("rest", s.Rest, "ConcurrentExecutions", "Maximum"),
			s.counted(metrics.StoreRequests)),
	)
	row(title("Who is contended?"))
	row(s.byNamespace(metrics.Refused), s.table("Locks that were refused most", contended))
	row(title("Who keeps losing leases?"))
	row(
		s.byNamespace(metrics.CameBackLate), s.byNamespace(metrics.ReleasedLate), s.byNamespace(metrics.TakenOver),
		s.table("Holders that came back late", cameBackLate), s.table("Longest holds", longestHolds),
	)
}

func title(text string) awscloudwatch.IWidget {
	return awscloudwatch.NewTextWidget(&awscloudwatch.TextWidgetProps{
		Markdown: jsii.String("## " + text), Width: jsii.Number(24), Height: jsii.Number(1),
	})
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Left: &metrics, Width: jsii.Number(6), Height: jsii.Number(6),
	})
}

func labelled(label string, f awslambda.Function, metric, stat string) awscloudwatch.IMetric {
	o := statistic(stat)
	o.Label = jsii.String(label)
	return f.Metric(jsii.String(metric), o)
}

// byNamespace is one line for each namespace, those to come included.
func (s *LockService) byNamespace(metric string) awscloudwatch.IWidget {
	return graph(metric+" by namespace", awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SEARCH('{"%s",%s} MetricName="%s"', 'Sum', %d)`,
			metricsOf(s.Construct), metrics.Namespace, metric, period*60)),
		Label:        jsii.String(""),
		UsingMetrics: &map[string]awscloudwatch.IMetric{},
		Period:       awscdk.Duration_Minutes(jsii.Number(period)),
	}))
}

// table shows what a query finds.
func (s *LockService) table(title string, q query) awscloudwatch.IWidget {
	return awscloudwatch.NewLogQueryWidget(&awscloudwatch.LogQueryWidgetProps{
		Title:         jsii.String(title),
		LogGroupNames: &[]*string{s.Acquire.LogGroup().LogGroupName(), s.Rest.LogGroup().LogGroupName()},
		QueryString:   jsii.String(q.text),
		View:          awscloudwatch.LogQueryVisualizationType_TABLE,
		Width:         jsii.Number(6), Height: jsii.Number(6),
	})
}
