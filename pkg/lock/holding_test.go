package lock_test

import (
	"context"
	"testing"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func TestAHoldingIsTheLockAndItsToken(t *testing.T) {
	c := &lock.Client{Service: new(memlease.Store)}
	h, err := c.Acquire(t.Context(), "payments/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release(context.WithoutCancel(t.Context()))
	got := h.Holding()
	if err := got.Check(); err != nil || got.Lock != "payments/orders/42" || got.Token != h.Token() {
		t.Errorf("got %+v, error %v", got, err)
	}
	if carried := fence.HoldingFrom(h.Context()); carried.Lock != got.Lock || carried.Token != got.Token {
		t.Errorf("the context carries %+v, want %+v", carried, got)
	}
}
