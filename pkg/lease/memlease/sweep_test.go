package memlease

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// use acquires a lock that is never released.
func use(t *testing.T, m *Store, lock string) fence.Token {
	t.Helper()
	l, err := m.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "a", Lock: lock}, TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return l.Token
}

func TestNamesUsedOnceAreForgottenAndTheirTokensDoNotComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names = 100_000
		m := new(Store)
		last := make([]fence.Token, names)
		for i := range names {
			last[i] = use(t, m, fmt.Sprint("once ", i))
			if i%1000 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(8 * 24 * time.Hour)
		// They are looked at when their number has doubled since the last look.
		others := 0
		for len(m.records) >= names && others <= names {
			others++
			use(t, m, fmt.Sprint("another ", others))
		}
		if n := len(m.records); n != others {
			t.Fatalf("%d records are left of %d names used since", n, others)
		}
		for i := range names {
			if token := use(t, m, fmt.Sprint("once ", i)); token <= last[i] {
				t.Fatalf("token %d was granted after %d", token, last[i])
			}
		}
	})
}

func TestSweepForgetsRetiredRecordsAndOnlyThose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := protocol.At(time.Now())
		m := &Store{records: make(map[lease.Name]protocol.Record)}
		name := func(i int) lease.Name { return lease.Name{Namespace: "a", Lock: fmt.Sprint(i)} }
		for i := range 1023 {
			m.records[name(i)] = protocol.Record{Token: 1, Retire: now.Seconds() + int64(i%3) - 1}
		}
		m.sweep(now)
		if len(m.records) != 1023 {
			t.Fatalf("swept at %d records, too few to be worth it", len(m.records))
		}
		m.records[name(1023)] = protocol.Record{Token: 1, LeaseID: lease.NewID(), Retire: now.Seconds() + 1}
		m.sweep(now)
		for i := range 1024 {
			if _, found := m.records[name(i)]; found == (i < 1023 && i%3 == 0) {
				t.Errorf("record %d, to be retired %d seconds from now: found %t", i, i%3-1, found)
			}
		}
		if want := 2 * len(m.records); m.sweepAt != want {
			t.Errorf("the next sweep is at %d records, want %d", m.sweepAt, want)
		}
	})
}

func TestSweepIsNotRepeatedUntilTheRecordsHaveDoubled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(Store)
		sweeps, at := 0, 0
		for i := range 10_000 {
			use(t, m, fmt.Sprint(i))
			if m.sweepAt != at {
				sweeps, at = sweeps+1, m.sweepAt
			}
		}
		if sweeps != 4 || len(m.records) != 10_000 { // at 1024, 2048, 4096 and 8192
			t.Errorf("%d sweeps for %d records, want 4 for 10000", sweeps, len(m.records))
		}
	})
}
