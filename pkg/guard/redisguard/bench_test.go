package redisguard_test

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkSet compares a plain SET with a guarded one. The two alternate, so
// that both meet the same machine.
func BenchmarkSet(b *testing.B) {
	client := open(b)
	plainKey, guardedKey := newKey(b, client), newKey(b, client)
	g := guard(client)
	var plain, guarded []time.Duration
	for b.Loop() {
		t0 := time.Now()
		errPlain := client.Do(b.Context(), "SET", plainKey, "text").Err()
		t1 := time.Now()
		errGuarded := g.Set(b.Context(), holding(5), guardedKey, "text")
		guarded, plain = append(guarded, time.Since(t1)), append(plain, t1.Sub(t0))
		if errPlain != nil || errGuarded != nil {
			b.Fatal(errPlain, errGuarded)
		}
	}
	p, q := median(plain), median(guarded)
	b.ReportMetric(0, "ns/op") // of both together
	b.ReportMetric(float64(p.Nanoseconds())/1000, "µs/plain")
	b.ReportMetric(float64(q.Nanoseconds())/1000, "µs/guarded")
	b.ReportMetric(float64(q)/float64(p), "guarded/plain")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
