package dynamoguard_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
)

// BenchmarkUpdateItem compares an update of the caller with the same one
// guarded. The two alternate, so that both meet the same machine.
func BenchmarkUpdateItem(b *testing.B) {
	x := newTable(b)
	x.write("plain", 1, "paid")
	x.write("guarded", 1, "paid")
	g := holder(5)
	var plain, guarded []time.Duration
	for b.Loop() {
		t0 := time.Now()
		errPlain := x.update(b.Context(), x.client, "plain", g, is("paid"), becomes("paid"))
		t1 := time.Now()
		errGuarded := x.update(b.Context(), x.client, "guarded", g, is("paid").And(g.Condition()), g.Stamp(becomes("paid")))
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

// BenchmarkExpression is the guard's own part of that.
func BenchmarkExpression(b *testing.B) {
	g := holder(5)
	for name, build := range map[string]func() (expression.Expression, error){
		"plain": func() (expression.Expression, error) {
			return expression.NewBuilder().WithCondition(is("paid")).WithUpdate(becomes("paid")).Build()
		},
		"guarded": func() (expression.Expression, error) {
			return expression.NewBuilder().WithCondition(is("paid").And(g.Condition())).WithUpdate(g.Stamp(becomes("paid"))).Build()
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := build(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
