package infra

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
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
		graph("Calls", counted("Granted"), counted("Repeated"), counted("Refused"), counted("Renewed"), counted("Released"), counted("Broken")),
		graph("Failures", s.gateway("5xx", "Sum"), s.both("Errors"), s.both("Throttles"), counted("Throttled"),
			counted("ClockSkew"), counted("Misconfigured"), counted("Unknown")),
		graph("Time, in ms", s.Rest.MetricDuration(statistic("p50")), s.Rest.MetricDuration(statistic("p99")),
			measured("store_ms", "p50"), measured("store_ms", "p99")),
		graph("Calls under way, and DynamoDB requests", concurrency("acquire", s.Acquire), concurrency("rest", s.Rest), counted("store_requests")),
	)
	row(title("Who is contended?"))
	row(byNamespace("Refused"), s.table("Locks that were refused most", contended))
	row(title("Who keeps losing leases?"))
	row(
		byNamespace("CameBackLate"), byNamespace("TakenOver"),
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

func concurrency(label string, f awslambda.Function) awscloudwatch.IMetric {
	o := statistic("Maximum")
	o.Label = jsii.String(label)
	return f.Metric(jsii.String("ConcurrentExecutions"), o)
}

// byNamespace is one line for each namespace, those to come included.
func byNamespace(metric string) awscloudwatch.IWidget {
	return graph(metric+" by namespace", awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression:   jsii.String(`SEARCH('{Pawl,namespace} MetricName="` + metric + `"', 'Sum', 300)`),
		Label:        jsii.String(""),
		UsingMetrics: &map[string]awscloudwatch.IMetric{},
		Period:       awscdk.Duration_Minutes(jsii.Number(5)),
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
