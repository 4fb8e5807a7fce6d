package main

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// A process that has once seen a clock disagree must be able to learn that the
// clocks agree again. The function that serves acquire serves nothing else.
func TestAWrongDateRefusesOneAcquireAndNoMore(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Second, -5 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			proxy := faultproxy.Start(t, localtest.DynamoDBForTest(t).Endpoint)
			url, _ := serveOn(t, proxy.URL)
			c := client(url, connections())
			acquire := func() error {
				_, err := c.Acquire(t.Context(), lease.AcquireRequest{
					Name: lease.Name{Namespace: "a", Lock: lease.NewID()}, TTL: time.Minute,
				})
				return err
			}
			if err := acquire(); err != nil {
				t.Fatal(err)
			}
			proxy.Next("UpdateItem", faultproxy.Dated(ahead), faultproxy.Dated(ahead)) // the grant, and its release
			if err := acquire(); !errors.Is(err, lease.ErrClockSkew) {
				t.Errorf("answer dated %v ahead: got %v, want ErrClockSkew", ahead, err)
			}
			for i := range 10 {
				if err := acquire(); err != nil {
					t.Errorf("answer dated %v ahead: acquire %d after it: %v", ahead, i+1, err)
				}
			}
		})
	}
}
