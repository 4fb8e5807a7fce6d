package lock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func TestTheContextOfTheWorkCarriesTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lock.Client{Service: new(memlease.Store)}
		err := c.Do(t.Context(), "orders/42", func(ctx context.Context, token fence.Token) error {
			if h := fence.HoldingFrom(ctx); h.Lock != "orders/42" || h.Token != token {
				t.Errorf("the context carries %d of %q, want %d of orders/42", h.Token, h.Lock, token)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A write for one of the locks must not be sent with the token of another.
func TestTheContextOfSeveralLocksCarriesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lock.Client{Service: new(memlease.Store)}
		err := c.DoAll(t.Context(), []string{"orders/2", "orders/1"}, func(ctx context.Context, tokens map[string]fence.Token) error {
			if carried := fence.HoldingFrom(ctx).Token; carried != 0 || len(tokens) != 2 {
				t.Errorf("the context carries %d, and the tokens are %v", carried, tokens)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
