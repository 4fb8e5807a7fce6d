package metrics

import (
	"log/slog"
	"time"
)

// A Definition names a number in a line.
type Definition struct{ Name, Unit string }

// A set is numbers with the same dimensions.
type set struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []Definition
}

// A Line makes a log line one in CloudWatch's embedded metric format: what it
// defines are members of the line, and counted when the line is written.
type Line struct {
	At time.Time

	// In is the namespace of CloudWatch that the metrics are in.
	In string

	// Metrics count for the deployment, and those of ByNamespace for the
	// namespace in the line too.
	Metrics, ByNamespace []Definition
}

// Attr returns the member of a line that defines the metrics.
func (l Line) Attr() slog.Attr {
	sets := []set{{l.In, [][]string{{}}, l.Metrics}}
	if len(l.ByNamespace) > 0 {
		sets = append(sets, set{l.In, [][]string{{Namespace}}, l.ByNamespace})
	}
	return slog.Any("_aws", struct {
		Timestamp         int64
		CloudWatchMetrics []set
	}{l.At.UnixMilli(), sets})
}
