package dynamoguard_test

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkUpdateItem compares an update of the caller with the same one guarded.
// The two alternate, so that both meet the same machine.
func BenchmarkUpdateItem(b *testing.B) {
	x := newTable(b)
	x.write("guarded", 1, "paid")
	g := x.guard()
	var plain, guarded []time.Duration
	for b.Loop() {
		t0 := time.Now()
		_, errPlain := x.client.UpdateItem(b.Context(), x.becomes("plain", "paid"))
		t1 := time.Now()
		_, errGuarded := g.UpdateItem(b.Context(), holding(5), x.becomes("guarded", "paid"))
		guarded, plain = append(guarded, time.Since(t1)), append(plain, t1.Sub(t0))
		if errPlain != nil || errGuarded != nil {
			b.Fatal(errPlain, errGuarded)
		}
	}
	p, g2 := median(plain), median(guarded)
	b.ReportMetric(0, "ns/op") // of both together
	b.ReportMetric(float64(p.Microseconds()), "µs/plain")
	b.ReportMetric(float64(g2.Microseconds()), "µs/guarded")
	b.ReportMetric(float64(g2)/float64(p), "guarded/plain")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
