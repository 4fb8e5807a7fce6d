package main

import (
	"context"
	"log/slog"
)

// metricNamespace is where CloudWatch keeps the metrics.
const metricNamespace = "Pawl"

// outcomes says which metrics a call counts for, by action and outcome. An
// outcome of "" stands for every action.
var outcomes = map[[2]string][]string{
	{"acquire", "granted"}:           {"Granted"},
	{"acquire", "granted_abandoned"}: {"Granted", "TakenOver"}, // after a lease that ran out
	{"acquire", "repeated"}:          {"Repeated"},
	{"acquire", "held"}:              {"Refused"},
	{"renew", "renewed"}:             {"Renewed"},
	{"renew", "lease_lost"}:          {"CameBackLate"}, // the holder worked on without a lease until now
	{"renew", "lease_expired"}:       {"CameBackLate"},
	{"release", "released"}:          {"Released"},
	{"release", "lease_lost"}:        {"CameBackLate"},
	{"break", "broken"}:              {"Broken"},
	{"", "throttled"}:                {"Throttled"},
	{"", "clock_skew"}:               {"ClockSkew"},
	{"", "outcome_unknown"}:          {"Unknown"},
	{"", "misconfigured"}:            {"Misconfigured"},
}

// metered is a slog handler that makes the line of each call one in CloudWatch's
// embedded metric format, so that logging it counts it: for the deployment as a
// whole and by namespace. It adds members to the line and takes none away.
type metered struct{ slog.Handler }

// Handle implements [slog.Handler].
func (m metered) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != "call" {
		return m.Handler.Handle(ctx, r)
	}
	var action, outcome string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "action":
			action = a.Value.String()
		case "outcome":
			outcome = a.Value.String()
		}
		return true
	})
	if action == "" {
		return m.Handler.Handle(ctx, r) // for everyone, and about no lock
	}
	r = r.Clone()
	defined := []metric{{"store_requests", "Count"}, {"store_ms", "Milliseconds"}, {"ms", "Milliseconds"}}
	for _, key := range [][2]string{{action, outcome}, {"", outcome}} {
		for _, name := range outcomes[key] {
			defined = append(defined, metric{name, "Count"})
			r.AddAttrs(slog.Int(name, 1))
		}
	}
	dimensions := [][]string{{}}
	if outcome != "forbidden" && outcome != "invalid" { // or anyone could make up namespaces, each paid for
		dimensions = append(dimensions, []string{"namespace"})
	}
	r.AddAttrs(slog.Any("_aws", embedded{
		Timestamp:         r.Time.UnixMilli(),
		CloudWatchMetrics: []directive{{Namespace: metricNamespace, Dimensions: dimensions, Metrics: defined}},
	}))
	return m.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (m metered) WithAttrs(attrs []slog.Attr) slog.Handler {
	return metered{m.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (m metered) WithGroup(name string) slog.Handler { return metered{m.Handler.WithGroup(name)} }

// The embedded metric format, as CloudWatch's user guide specifies it.
type embedded struct {
	Timestamp         int64
	CloudWatchMetrics []directive
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

type metric struct{ Name, Unit string }
