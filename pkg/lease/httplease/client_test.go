package httplease_test

import (
	"testing"
	"testing/synctest"

	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

func TestAServiceOverHTTPKeepsThePromises(t *testing.T) {
	for _, p := range leasetest.Promises() {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { p.Check(t, service(t, new(memlease.Store))) })
		})
	}
}
