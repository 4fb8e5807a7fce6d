package httplease_test

import (
	"testing"
	"testing/synctest"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/leasetest"
)

func TestAServiceOverHTTPKeepsThePromises(t *testing.T) {
	for _, p := range leasetest.Promises() {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { p.Check(t, service(t, new(lease.Memory))) })
		})
	}
}
