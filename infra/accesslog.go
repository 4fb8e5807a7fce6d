package infra

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/functions/metrics"
)

// accessLogName is under the prefix for which AWS needs no new statement in the
// account's resource policy for each log: that policy is full after a few. The id
// of the stack is in it because the log outlives the stack.
func accessLogName(scope constructs.Construct) string {
	stack := awscdk.Stack_Of(scope)
	id := awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), stack.StackId(), nil))
	return "/aws/vendedlogs/pawl/" + *stack.StackName() + "/" + *id
}

// turnedAway finds the calls that the gateway's own throttle has refused: one
// that a function has answered has a status of the integration.
const turnedAway = `{ ($.status = "429") && ($.integration_status = "-") }`

// countTurnedAway makes a metric of them: the gateway's own have no 429.
func (s *LockService) countTurnedAway(logs awslogs.ILogGroup) {
	awslogs.NewCfnMetricFilter(s.Construct, jsii.String("TurnedAway"), &awslogs.CfnMetricFilterProps{
		LogGroupName:  logs.LogGroupName(),
		FilterPattern: jsii.String(turnedAway),
		MetricTransformations: []any{&awslogs.CfnMetricFilter_MetricTransformationProperty{
			MetricNamespace: jsii.String(metricsOf(s.Construct)),
			MetricName:      jsii.String(metrics.TurnedAway),
			MetricValue:     jsii.String("1"),
		}},
	})
}

// accessLogFormat has what only the gateway knows: calls that it refused, why,
// and who made them. What became of the others is in the functions' logs. The
// query is left out: locks are named there.
func accessLogFormat(jwt bool) string {
	format := map[string]string{
		"time":               "$context.requestTime",
		"request_id":         "$context.requestId",
		"source_ip":          "$context.identity.sourceIp",
		"user_agent":         "$context.identity.userAgent",
		"route":              "$context.routeKey",
		"path":               "$context.path",
		"status":             "$context.status",
		"latency_ms":         "$context.responseLatency",
		"integration_status": "$context.integrationStatus",
		"integration_error":  "$context.integrationErrorMessage",
		"error":              "$context.error.message",
		"authorizer_error":   "$context.authorizer.error",
		"caller":             "$context.identity.userArn",
	}
	if jwt {
		format["caller"] = "$context.authorizer.claims.sub"
		format["issuer"] = "$context.authorizer.claims.iss"
	}
	text, err := json.Marshal(format)
	must(err)
	return string(text)
}
