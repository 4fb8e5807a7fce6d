package memlease_test

import (
	"testing"
	"testing/synctest"

	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

// A bubble has its own time, so leases that run out do so at once.
func TestMemoryKeepsThePromises(t *testing.T) {
	for _, p := range leasetest.Promises() {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { p.Check(t, new(memlease.Store)) })
		})
	}
}
