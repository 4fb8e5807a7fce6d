// Package metrics is what the functions count, and how: their names, what a call
// counts for, and the log line by which CloudWatch learns of it. Alarms and
// dashboards take the names from here.
//
// A metric has no dimension, or the namespace of a lock. What becomes a dimension
// is paid for, so that nothing does that a caller could make up. Gateway and
// Lambda have metrics of their own, and what they refuse is not counted here.
package metrics

import (
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// What calls count for.
const (
	Granted        = "Granted"
	TakenOver      = "TakenOver" // granted after a lease that ran out
	Repeated       = "Repeated"
	Refused        = "Refused" // another holds the lock
	Renewed        = "Renewed"
	Released       = "Released"
	ReleasedBefore = "ReleasedBefore"
	ReleasedLate   = "ReleasedLate" // by a holder that had worked without a lease
	CameBackLate   = "CameBackLate" // a holder had worked without a lease, and another may have had it
	Broken         = "Broken"

	Throttled     = "Throttled" // by DynamoDB
	ClockSkew     = "ClockSkew"
	Unknown       = "Unknown"
	Unavailable   = "Unavailable"
	Misconfigured = "Misconfigured"
	Quarantined   = "Quarantined" // after a restore
	Panicked      = "Panicked"
)

// What calls measure; each has all three.
const (
	StoreRequests = "store_requests"
	StoreTime     = "store_ms"
	Time          = "ms"
)

// TurnedAway counts the calls that the gateway's throttles have refused; it is
// the gateway's access log that has them.
const TurnedAway = "TurnedAway"

// What a run of the sweeper counts.
const (
	Retired = "Retired"
	Kept    = "Kept"
	Seen    = "Seen"
	PassAge = "PassAgeMinutes"
)

// Namespace is the dimension that some metrics have, and the member of a line
// with its value.
const Namespace = "namespace"

// A count is what a call counts for, by what came of it.
type count struct {
	action, outcome string // an action of "" stands for all of them
	late            bool   // counts only if the record proves that there was such a lease
	metrics         []string
}

// counts with an action are for outcomes that the table itself has decided: the
// call was permitted, and its namespace is one. Only those count by namespace.
var counts = []count{
	{"acquire", httplease.OutcomeGranted, false, []string{Granted}},
	{"acquire", httplease.OutcomeGrantedAbandoned, false, []string{Granted, TakenOver}},
	{"acquire", httplease.OutcomeRepeated, false, []string{Repeated}},
	{"acquire", httplease.OutcomeHeld, false, []string{Refused}},
	{"renew", httplease.OutcomeRenewed, false, []string{Renewed}},
	{"renew", httplease.OutcomeLost, true, []string{CameBackLate}},
	{"renew", httplease.OutcomeExpired, true, []string{CameBackLate}},
	{"release", httplease.OutcomeReleased, false, []string{Released}},
	{"release", httplease.OutcomeReleasedBefore, false, []string{ReleasedBefore}},
	{"release", httplease.OutcomeReleasedLate, false, []string{ReleasedLate}},
	{"release", httplease.OutcomeLost, true, []string{CameBackLate}},
	{"release", httplease.OutcomeExpired, true, []string{CameBackLate}},
	{"break", httplease.OutcomeBroken, false, []string{Broken}},
	{"", httplease.OutcomeThrottled, false, []string{Throttled}},
	{"", httplease.OutcomeClockSkew, false, []string{ClockSkew}},
	{"", httplease.OutcomeUnknown, false, []string{Unknown}},
	{"", httplease.OutcomeUnavailable, false, []string{Unavailable}},
	{"", httplease.OutcomeMisconfigured, false, []string{Misconfigured}},
	{"", httplease.OutcomeQuarantine, false, []string{Quarantined}},
}

// of returns what a call counts for, and whether by namespace too.
func of(action, outcome string, late bool) (metrics []string, byNamespace bool) {
	for _, c := range counts {
		if (c.action == action || c.action == "") && c.outcome == outcome && (late || !c.late) {
			return c.metrics, c.action != ""
		}
	}
	return nil, false
}
