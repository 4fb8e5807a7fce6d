package dynamolease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// The first page of a pass may fail again and again, and so may the look at the
// place, which must not be forgotten then.
func TestAPassThatDoesNotComeOnGrowsOld(t *testing.T) {
	x := newTable(t)
	now, failing := noon, "Scan"
	w := x.sweeper(watcher{before: func(operation string) error {
		if operation == failing {
			return errors.New("network")
		}
		return nil
	}})
	for _, failing = range []string{"Scan", "Scan", "GetItem", "Scan"} {
		w.Now = now.Time
		got, err := w.Sweep(t.Context(), now.Time())
		if err == nil || failing == "Scan" && !got.Began.Equal(noon.Time()) {
			t.Errorf("%s fails: got %+v, %v, want a pass that began at noon", failing, got, err)
		}
		now += hour
	}
}

func TestASweeperThatIsNotSetUpSweepsNothing(t *testing.T) {
	x := newTable(t)
	now := noon.Time()
	for what, c := range map[string]struct {
		change func(*dynamolease.Sweeper)
		at     time.Time
	}{
		"Client":        {func(s *dynamolease.Sweeper) { s.Client = nil }, now},
		"Table":         {func(s *dynamolease.Sweeper) { s.Table = "" }, now},
		"Rate is 0.5":   {func(s *dynamolease.Sweeper) { s.Rate = .5 }, now},
		"Rate is -1":    {func(s *dynamolease.Sweeper) { s.Rate = -1 }, now},
		"Rate is NaN":   {func(s *dynamolease.Sweeper) { s.Rate = math.NaN() }, now},
		"Rate is 1e+10": {func(s *dynamolease.Sweeper) { s.Rate = 1e10 }, now},
		"Page is -1":    {func(s *dynamolease.Sweeper) { s.Page = -1 }, now},
		"Page is 1001":  {func(s *dynamolease.Sweeper) { s.Page = 1001 }, now},
		"from 2020":     {func(*dynamolease.Sweeper) {}, time.UnixMilli(0)},
		"to 2100":       {func(*dynamolease.Sweeper) {}, time.UnixMilli(1 << 43)},
		"come again":    {func(*dynamolease.Sweeper) {}, now.Add(time.Minute + time.Millisecond)},
	} {
		s := x.sweeper(watcher{})
		s.Now = func() time.Time { return now }
		c.change(s)
		if got, err := s.Sweep(t.Context(), c.at); !errors.Is(err, lease.ErrMisconfigured) || !strings.Contains(err.Error(), what) || got != (dynamolease.Swept{}) {
			t.Errorf("%s: got %+v, %v, want ErrMisconfigured", what, got, err)
		}
	}
	s := x.sweeper(watcher{})
	s.Now = func() time.Time { return now }
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if got, err := s.Sweep(ctx, now); err == nil || !strings.Contains(err.Error(), "deadline") || got.Seen != 0 {
		t.Errorf("with 5s to go: got %+v, %v", got, err)
	}
	if got, err := s.Sweep(t.Context(), now.Add(time.Minute)); err != nil || !got.Done {
		t.Errorf("by a clock that is ahead as far as it may be: got %+v, %v", got, err)
	}
}

func TestEveryRequestOfASweepWaitsForItsTurn(t *testing.T) {
	x := newTable(t)
	now := noon
	s := x.store(&now, protocol.Rules{})
	const items, rate = 20, 50
	for i := range items {
		x.use(s, fmt.Sprint(i))
	}
	w := x.sweeper(watcher{})
	w.Rate, w.Page = rate, items+1
	started := time.Now()
	got := x.sweep(w, now+8*day)
	if took, least := time.Since(started), items*time.Second/rate; got.Retired != items || took < least {
		t.Errorf("%+v took %v, want %d requests a second: at least %v", got, took, rate, least)
	}
}

func TestALockThatIsUsedInAnotherRegionIsKept(t *testing.T) {
	l := newLine(t) // in a table of all tests with faults: only its own lock is old
	client := l.store.Client
	name := "sweep-" + lease.NewID()
	must[struct{}](t)(struct{}{}, dynamolease.CreateTable(t.Context(), client, name))
	t.Cleanup(func() { _, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}) })
	l.store.Table = name
	l.store.Now = noon.Time
	must[lease.Lease](t)(l.store.Acquire(t.Context(), l.request()))
	l.proxy.Every("DeleteItem", faultproxy.Refuse(400, "ReplicatedWriteConflictException"))
	later := (noon + 8*day).Time
	got, err := (&dynamolease.Sweeper{Client: client, Table: name, Now: later}).Sweep(t.Context(), later())
	if err != nil || got.Kept != 1 || got.Retired != 0 || !got.Done {
		t.Errorf("got %+v, %v, want it kept", got, err)
	}
}
