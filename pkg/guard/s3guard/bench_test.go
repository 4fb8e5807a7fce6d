package s3guard_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

// BenchmarkWrite writes with a guard, without what a Claim saves and with it,
// and in between without one, so that a machine that changes its speed changes
// all. It reports medians, and how many times that of a plain PutObject.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			g, _ := newGuard(b)
			ctx, body := b.Context(), noise(size)
			claimed := g.Object(holding(1), "claimed")
			if err := claimed.Claim(ctx); err != nil {
				b.Fatal(err)
			}
			ways := []func() error{
				func() error {
					key := "plain"
					_, err := g.Client.PutObject(ctx, &s3.PutObjectInput{Bucket: &g.Bucket, Key: &key, Body: bytes.NewReader(body)})
					return err
				},
				func() error { return claimed.Write(ctx, bytes.NewReader(body), s3guard.About{}) },
				func() error {
					return g.Object(holding(1), "first").Write(ctx, bytes.NewReader(body), s3guard.About{})
				},
			}
			took := make([][]time.Duration, len(ways))
			for b.Loop() {
				for i, way := range ways {
					started := time.Now()
					if err := way(); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(started))
				}
			}
			var median [3]float64
			for i, d := range took {
				slices.Sort(d)
				median[i] = d[len(d)/2].Seconds() * 1000
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median[0], "ms-plain")
			b.ReportMetric(median[1]/median[0], "x-claimed")
			b.ReportMetric(median[2]/median[0], "x-first")
		})
	}
}

// BenchmarkGet reads a version through its pointer, and the same bytes without.
func BenchmarkGet(b *testing.B) {
	g, _ := newGuard(b)
	ctx := b.Context()
	write(b, g, "film.mp4", 1, string(noise(1<<10)))
	info, err := g.Stat(ctx, "film.mp4")
	if err != nil {
		b.Fatal(err)
	}
	var plain, guarded []time.Duration
	for b.Loop() {
		started := time.Now()
		getRaw(b, g, info.DataKey)
		plain = append(plain, time.Since(started))
		started = time.Now()
		if _, err := get(ctx, g, "film.mp4"); err != nil {
			b.Fatal(err)
		}
		guarded = append(guarded, time.Since(started))
	}
	slices.Sort(plain)
	slices.Sort(guarded)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(plain[len(plain)/2].Seconds()*1000, "ms-plain")
	b.ReportMetric(guarded[len(guarded)/2].Seconds()/plain[len(plain)/2].Seconds(), "x-guarded")
}
