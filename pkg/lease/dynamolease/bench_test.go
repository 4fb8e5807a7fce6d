package dynamolease_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// BenchmarkAcquireRelease compares an acquire and a release with two updates that
// would leave the same item: plain ones, and ones with a condition and the item
// as the answer, which is what the engine takes for being asked. All take turns,
// so that what else the machine does falls on them alike, and the ratios are the
// medians of all rounds. The times are of one pair of one worker.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, concurrency := range []int{1, 32} {
		b.Run(fmt.Sprint("concurrency ", concurrency), func(b *testing.B) {
			x := newTable(b)
			// A clock that moves at every reading: no host grants a lock twice in
			// a millisecond when DynamoDB is not on the same machine.
			var clock atomic.Int64
			clock.Store(int64(noon))
			s := x.store(nil, protocol.Rules{})
			s.Now = func() time.Time { return protocol.Instant(clock.Add(1)).Time() }
			warm(b, s)
			locks := make([]lease.AcquireRequest, concurrency)
			for i := range locks {
				locks[i] = lease.AcquireRequest{Name: lease.Name{Namespace: "bench", Lock: fmt.Sprint("pawl-", i)}, TTL: time.Minute, Holder: "worker-1"}
			}
			pawl := func(i int) { acquireAndRelease(b, s, locks[i]) }
			pawl(0)
			item := lease.Name{Namespace: "bench", Lock: "pawl-0"}
			sides := []func(int){pawl, x.rawPair(item, false), x.rawPair(item, true)}
			for i := range concurrency { // connect, and make the items
				for _, side := range sides {
					side(i)
				}
			}
			took, ratios := make([]time.Duration, len(sides)), make([][]float64, len(sides))
			rounds := 0
			for ; b.Loop(); rounds++ {
				now := make([]time.Duration, len(sides))
				for i := range sides {
					i = (i + rounds) % len(sides) // each round begins with another one
					now[i] = together(concurrency, sides[i])
					took[i] += now[i]
				}
				for i := range sides {
					ratios[i] = append(ratios[i], float64(now[0])/float64(now[i]))
				}
			}
			b.ReportMetric(0, "ns/op") // of all together it says nothing
			for i, name := range []string{"pawl", "raw", "asking"} {
				slices.Sort(ratios[i])
				b.ReportMetric(float64(took[i].Microseconds())/float64(rounds*perRound), name+"-µs")
				if i > 0 {
					b.ReportMetric(ratios[i][rounds/2], "pawl/"+name)
				}
			}
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
// of changing what a release changes. It may ask for a condition that holds, and
// for the item.
func (x table) rawPair(n lease.Name, asks bool) func(worker int) {
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
	var condition *string
	answer := types.ReturnValueNone
	if asks {
		condition, answer = aws.String("attribute_not_exists(#free) OR #free >= :free"), types.ReturnValueAllNew
		values[":free"] = zero
	}
	return func(worker int) {
		k := itemKey(lease.Name{Namespace: "bench", Lock: fmt.Sprint("raw-", asks, worker)})
		for _, in := range []*dynamodb.UpdateItemInput{
			{TableName: &x.name, Key: k, UpdateExpression: &update, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ConditionExpression: condition, ReturnValues: answer},
			{TableName: &x.name, Key: k, UpdateExpression: &free,
				ExpressionAttributeNames:  map[string]string{"#free": "free", "#lid": "lid", "#exp": "exp"},
				ExpressionAttributeValues: map[string]types.AttributeValue{":free": zero}, ConditionExpression: condition, ReturnValues: answer},
		} {
			if _, err := x.client.UpdateItem(x.Context(), in); err != nil {
				x.Error(err)
			}
		}
	}
}
