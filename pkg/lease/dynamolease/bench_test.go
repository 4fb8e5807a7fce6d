package dynamolease_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// BenchmarkAcquireRelease compares an acquire and a release with the two updates
// without any condition or answer that would leave the same item. Both take
// turns, so that what else the machine does falls on both alike, and the ratio
// is the median of all rounds. The times are of one pair of one worker.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, concurrency := range []int{1, 32} {
		b.Run(fmt.Sprint("concurrency ", concurrency), func(b *testing.B) {
			x := newTable(b)
			// A clock that moves at every reading: no host grants a lock twice in
			// a millisecond when DynamoDB is not on the same machine.
			var clock atomic.Int64
			clock.Store(int64(noon))
			s := x.store(nil, lease.Rules{})
			s.Now = func() time.Time { return lease.Instant(clock.Add(1)).Time() }
			locks := make([]lease.AcquireRequest, concurrency)
			for i := range locks {
				locks[i] = lease.AcquireRequest{Name: lease.Name{Namespace: "bench", Lock: fmt.Sprint("pawl-", i)}, TTL: time.Minute, Holder: "worker-1"}
			}
			pawl := func(i int) { acquireAndRelease(b, s, locks[i]) }
			pawl(0)
			raw := x.rawPair(lease.Name{Namespace: "bench", Lock: "pawl-0"})
			side := [2]func(int){pawl, raw}
			for i := range concurrency { // connect, and make the items
				side[0](i)
				side[1](i)
			}
			var took [2]time.Duration
			var ratios []float64
			for b.Loop() {
				// Each round begins with the other one.
				first := len(ratios) % 2
				var now [2]time.Duration
				now[first] = together(concurrency, side[first])
				now[1-first] = together(concurrency, side[1-first])
				took[0], took[1] = took[0]+now[0], took[1]+now[1]
				ratios = append(ratios, float64(now[0])/float64(now[1]))
			}
			slices.Sort(ratios)
			per := float64(len(ratios) * perRound)
			b.ReportMetric(0, "ns/op") // of both together it says nothing
			b.ReportMetric(float64(took[0].Microseconds())/per, "pawl-µs")
			b.ReportMetric(float64(took[1].Microseconds())/per, "raw-µs")
			b.ReportMetric(ratios[len(ratios)/2], "pawl/raw")
		})
	}
}

// perRound is how often each worker does a side's work before it is the other's
// turn.
const perRound = 4

// together has workers do the same at once, and returns how long it took all.
func together(workers int, work func(worker int)) time.Duration {
	started := time.Now()
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for range perRound {
				work(i)
			}
		})
	}
	all.Wait()
	return time.Since(started)
}

func acquireAndRelease(b *testing.B, s *dynamolease.Store, q lease.AcquireRequest) {
	var call lease.Call
	ctx := lease.WithCall(b.Context(), &call)
	l, err := s.Acquire(ctx, q)
	if err != nil {
		b.Error(err)
		return
	}
	if _, err := s.Release(ctx, lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token}); err != nil {
		b.Error(err)
	}
	if call.Requests != 2 {
		b.Errorf("%d requests, want 2", call.Requests)
	}
}

// rawPair returns the work of writing what n has, one item for each worker, and
// of changing what a release changes.
func (x table) rawPair(n lease.Name) func(worker int) {
	update, names, values := "SET ", make(map[string]string), make(map[string]types.AttributeValue)
	separator := ""
	for name, value := range x.item(n) {
		if name == "pk" {
			continue
		}
		update += separator + "#" + name + " = :" + name
		names["#"+name], values[":"+name] = name, value
		separator = ", "
	}
	for name, value := range map[string]types.AttributeValue{
		"lid": &types.AttributeValueMemberS{Value: lease.NewID()}, "exp": &types.AttributeValueMemberN{Value: fmt.Sprint(int64(noon))},
	} {
		update += ", #" + name + " = :" + name
		names["#"+name], values[":"+name] = name, value
	}
	free, zero := "SET #free = :free REMOVE #lid, #exp", &types.AttributeValueMemberN{Value: "0"}
	return func(worker int) {
		k := itemKey(lease.Name{Namespace: "bench", Lock: fmt.Sprint("raw-", worker)})
		for _, in := range []*dynamodb.UpdateItemInput{
			{TableName: &x.name, Key: k, UpdateExpression: &update, ExpressionAttributeNames: names, ExpressionAttributeValues: values},
			{TableName: &x.name, Key: k, UpdateExpression: &free,
				ExpressionAttributeNames:  map[string]string{"#free": "free", "#lid": "lid", "#exp": "exp"},
				ExpressionAttributeValues: map[string]types.AttributeValue{":free": zero}},
		} {
			if _, err := x.client.UpdateItem(x.Context(), in); err != nil {
				x.Error(err)
			}
		}
	}
}
