package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"
)

// A query is one of CloudWatch Logs Insights, on the line that each call leaves.
type query struct{ name, text string }

// A refused acquire has its own holder in its line, and the token of the one
// that it lost to: who asks for a holder must name outcomes.
var (
	whoHeld = query{"who-held-token-N-of-lock-L", `fields @timestamp, action, outcome, holder, principal, reason
| filter namespace = "NAMESPACE" and lock = "LOCK" and (token = 1 or new_token = 1)
| filter outcome in ["granted", "granted_abandoned", "repeated", "renewed", "released", "released_late", "broken",
    "lease_lost", "lease_expired"]
| sort @timestamp asc
| limit 1000`}

	allBreaks = query{"all-breaks", `fields @timestamp, namespace, lock, token, new_token, holder, principal, reason
| filter outcome = "broken"
| sort @timestamp desc
| limit 1000`}

	longestHolds = query{"longest-holds", `filter outcome in ["granted", "granted_abandoned", "renewed", "released",
    "released_late"]
| fields toMillis(@timestamp) as at
| stats (max(at) - min(at)) / 1000 as held_s, latest(holder) as last_holder by namespace, lock, token
| sort held_s desc
| limit 50`}

	contended = query{"who-is-contended", `filter outcome = "held"
| stats count(*) as refused, count_distinct(principal) as callers by namespace, lock
| sort refused desc
| limit 20`}

	// A line without "late" may be of a lease id that somebody made up. Insights
	// reads true as 1.
	cameBackLate = query{"who-came-back-late", `filter outcome = "released_late"
    or (outcome in ["lease_lost", "lease_expired"] and late = 1)
| stats count(*) as times, latest(token) as last_token, latest(@timestamp) as last_seen by namespace, lock, principal
| sort times desc
| limit 20`}

	queries = []query{whoHeld, allBreaks, longestHolds, contended, cameBackLate}
)

// addQueries saves them in a folder that is called like the stack.
func (s *LockService) addQueries() {
	for _, q := range queries {
		awslogs.NewCfnQueryDefinition(s.Construct, jsii.String(q.name), &awslogs.CfnQueryDefinitionProps{
			Name:          jsii.String(*awscdk.Stack_Of(s.Construct).StackName() + "/" + q.name),
			QueryString:   jsii.String(q.text),
			LogGroupNames: &[]any{s.Acquire.LogGroup().LogGroupName(), s.Rest.LogGroup().LogGroupName()},
		})
	}
}
