package metrics

import (
	"context"
	"log/slog"

	"github.com/pawl-lock/pawl/pkg/apigw"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Handler passes log records on. Those of calls and of panics count: it adds
// members to them and takes none away.
type Handler struct {
	slog.Handler

	// In is the namespace of CloudWatch that the metrics are in.
	In string
}

// Handle implements [slog.Handler].
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "call":
		r = h.call(r)
	case apigw.Panicked:
		r = r.Clone()
		r.AddAttrs(slog.Int(Panicked, 1), Line{At: r.Time, In: h.In, Metrics: []Definition{{Panicked, "Count"}}}.Attr())
	}
	return h.Handler.Handle(ctx, r)
}

// call returns the record of a call with what it counts for.
func (h Handler) call(r slog.Record) slog.Record {
	var action, outcome, namespace string
	var late bool
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "action":
			action = a.Value.String()
		case "outcome":
			outcome = a.Value.String()
		case "late":
			late = a.Value.Kind() == slog.KindBool && a.Value.Bool()
		case Namespace:
			namespace = a.Value.String()
		}
		return true
	})
	if action == "" {
		return r // for everyone, and about no lock
	}
	r = r.Clone()
	counted, byNamespace := of(action, outcome, late)
	l := Line{At: r.Time, In: h.In, Metrics: []Definition{
		{StoreRequests, "Count"}, {StoreTime, "Milliseconds"}, {Time, "Milliseconds"},
	}}
	for _, name := range counted {
		r.AddAttrs(slog.Int(name, 1))
		l.Metrics = append(l.Metrics, Definition{name, "Count"})
	}
	if byNamespace && (lease.Name{Namespace: namespace, Lock: "any"}).Validate() == nil {
		l.ByNamespace = l.Metrics[len(l.Metrics)-len(counted):]
	}
	r.AddAttrs(l.Attr())
	return r
}

// WithAttrs implements [slog.Handler].
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Handler{h.Handler.WithAttrs(attrs), h.In}
}

// WithGroup implements [slog.Handler].
func (h Handler) WithGroup(name string) slog.Handler { return Handler{h.Handler.WithGroup(name), h.In} }
