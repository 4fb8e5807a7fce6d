package lock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// What it takes more than the raw calls is what holding a lock adds to getting one.
func BenchmarkDo(b *testing.B) {
	m := new(memlease.Store)
	n := lease.Name{Namespace: "a", Lock: "b"}
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l, err := m.Acquire(b.Context(), lease.AcquireRequest{Name: n, TTL: ttl, Holder: "h", RequestID: lease.NewID()})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := m.Release(b.Context(), lease.ReleaseRequest{Name: n, LeaseID: l.ID, Token: l.Token}); err != nil {
				b.Fatal(err)
			}
		}
	})
	// With a context that can end, each request has a goroutine of its own, so
	// that the caller need not wait for the answer.
	for name, ctx := range map[string]context.Context{"do": b.Context(), "do without cancel": context.Background()} {
		b.Run(name, func(b *testing.B) {
			c := &lock.Client{Service: m, Holder: "h"}
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Do(ctx, "a/b", func(context.Context, fence.Token) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHeld measures 10,000 locks that are held and idle, the memory of the
// service not included.
func BenchmarkHeld(b *testing.B) {
	const locks = 10_000
	m := new(memlease.Store)
	c := &lock.Client{Service: m, TTL: time.Minute}
	all := func() []*lock.Held {
		held := make([]*lock.Held, locks)
		for i := range held {
			h, err := c.Acquire(b.Context(), fmt.Sprint("a/", i))
			if err != nil {
				b.Fatal(err)
			}
			held[i] = h
		}
		return held
	}
	end := func(held []*lock.Held) {
		for _, h := range held {
			if err := h.Release(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	end(all()) // the service has its records now
	usage := func() (bytes, goroutines int) {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int(s.HeapAlloc + s.StackInuse), runtime.NumGoroutine()
	}
	for b.Loop() {
		b.StopTimer()
		bytes, goroutines := usage()
		b.StartTimer()
		held := all()
		b.StopTimer()
		bytesHeld, goroutinesHeld := usage()
		b.ReportMetric(float64(bytesHeld-bytes)/locks, "B/held")
		b.ReportMetric(float64(goroutinesHeld-goroutines)/locks, "goroutines/held")
		end(held)
		b.StartTimer()
	}
}

// BenchmarkHandover measures how long after a release somebody who waits is
// granted the lock.
func BenchmarkHandover(b *testing.B) {
	c := &lock.Client{Service: new(memlease.Store)}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprint("a/", i)
		h, err := c.Acquire(b.Context(), name)
		if err != nil {
			b.Fatal(err)
		}
		granted := make(chan time.Time, 1)
		go func() {
			h, err := c.Acquire(b.Context(), name)
			granted <- time.Now()
			if err == nil {
				err = h.Release(b.Context())
			}
			if err != nil {
				b.Error(err)
			}
		}()
		// At any point between two looks of the waiter.
		b.StopTimer()
		time.Sleep(400*time.Millisecond + time.Duration(i*37%200)*time.Millisecond)
		b.StartTimer()
		released := time.Now()
		if err := h.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-granted).Sub(released))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
}
