package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// asking tells of each acquire that it is about to be made.
type asking struct {
	lease.Service
	asked chan<- struct{}
}

func (a asking) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	a.asked <- struct{}{}
	return a.Service.Acquire(ctx, q)
}

// A rolling deploy: ten candidates leave while they wait, and then the leader does.
// Their waits are going on in functions that do not learn of it.
func TestAGracefulExitOfAllCandidatesLeavesTheLockToTheNext(t *testing.T) {
	url, log := serve(t)
	asked := make(chan struct{}, 100)
	to := func(holder string) *lock.Client {
		return &lock.Client{Service: asking{client(url, connections()), asked}, Holder: holder}
	}
	leader, err := to("leader").Acquire(t.Context(), "a/leader")
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	ctx, shutdown := context.WithCancel(t.Context())
	defer shutdown()
	watcher := client(url, connections())
	var (
		candidates sync.WaitGroup
	)
	for i := range 10 {
		c := to(fmt.Sprint("candidate ", i))
		candidates.Go(func() {
			e := lock.Election{Client: c, Lock: "a/leader", OnElected: func(context.Context, fence.Token) error {
				t.Error("elected")
				return nil
			}}
			if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
		})
	}
	for range 10 {
		<-asked
	}
	for range 3 { // by now the first of them have arrived, and wait
		if _, err := watcher.Get(t.Context(), lease.Name{Namespace: "a", Lock: "leader"}); err != nil {
			t.Fatal(err)
		}
	}
	left := time.Now()
	shutdown()
	candidates.Wait()
	t.Logf("the candidates left within %v", time.Since(left))
	if n := strings.Count(log.String(), `"outcome":"withdrawn"`); n != 10 {
		t.Errorf("%d requests were withdrawn, want those of 10 candidates", n)
	}
	if err := leader.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	released := time.Now()
	next, err := to("next").Acquire(t.Context(), "a/leader")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(released); took > 2*time.Second || next.Abandoned() != nil {
		t.Errorf("the next leads after %v, and is told of %v", took, next.Abandoned())
	} else {
		t.Logf("the next leads after %v", took)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
