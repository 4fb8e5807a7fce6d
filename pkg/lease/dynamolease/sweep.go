package dynamolease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Sweeper deletes the items of retired locks where DynamoDB does not: a table
// with multi-Region strong consistency has no TTL.
//
// A lock that is granted between the look and the delete survives. One that is
// deleted starts again above every token that it ever had, unless the time that
// a sweep goes by is ahead by as much as the retention.
type Sweeper struct {
	// Client talks to DynamoDB; see [NewClient]. Required.
	Client *dynamodb.Client

	// Table is the table's name. Required.
	Table string

	// Rate is how many requests are sent a second, so that a sweep does not take
	// what holders need. Zero means 50.
	Rate float64

	// Page is how many items one request looks at. Zero means 100.
	Page int32
}

// Swept is what a sweep has done.
type Swept struct {
	Seen    int  // items looked at, those in use included
	Retired int  // items deleted
	Kept    int  // items that changed between the look and the delete
	Done    bool // it came to the end of the table: the next one starts again
}

const (
	// place is the key of the item that says where the next sweep goes on. The
	// key of a lock has a '#', and without the attribute gc nothing retires it.
	place = "sweeper"

	// remembering is what is left of a deadline to write that item in.
	remembering = 5 * time.Second
)

// Sweep goes on where the last sweep stopped, and deletes what was to be retired
// before now, until it comes to the end of the table or close to the deadline of
// ctx. An error stops it too; the next sweep repeats what this one did not
// finish. Two at a time do no harm, and the same work.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (swept Swept, err error) {
	limited := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, deadline.Add(-remembering))
		defer cancel()
	}
	turn := time.NewTicker(time.Duration(float64(time.Second) / cmp.Or(s.Rate, 50)))
	defer turn.Stop()
	started, err := s.recall(ctx)
	from := started
	for err == nil && !swept.Done {
		var next string
		if next, err = s.page(limited, turn.C, from, num(lease.At(now)/1000), &swept); err == nil {
			from, swept.Done = next, next == ""
		}
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = nil // the time was up, and what was under way is repeated
	}
	if from != started {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remembering)
		defer cancel()
		err = errors.Join(err, s.remember(ctx, from))
	}
	if err != nil {
		return swept, fmt.Errorf("dynamolease: sweep %q: %w", s.Table, err)
	}
	return swept, nil
}

// page retires what there is to retire after the key from, and returns the key
// to go on after, "" at the end of the table. What it reads may be old: the
// delete has the condition, and this read costs half.
func (s *Sweeper) page(ctx context.Context, turn <-chan time.Time, from string, now types.AttributeValue, swept *Swept) (next string, err error) {
	in := &dynamodb.ScanInput{
		TableName:                 &s.Table,
		Limit:                     aws.Int32(cmp.Or(s.Page, 100)),
		ProjectionExpression:      aws.String("#pk, #tok"),
		FilterExpression:          aws.String("#gc < :now"),
		ExpressionAttributeNames:  map[string]string{"#pk": "pk", "#tok": "tok", "#gc": "gc"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":now": now},
	}
	if from != "" {
		in.ExclusiveStartKey = map[string]types.AttributeValue{"pk": str(from)}
	}
	if err := wait(ctx, turn); err != nil {
		return "", err
	}
	out, err := s.Client.Scan(ctx, in)
	if err != nil {
		return "", err
	}
	swept.Seen += int(out.ScannedCount)
	var (
		deletes sync.WaitGroup
		mu      sync.Mutex // of swept and err
	)
	for _, item := range out.Items {
		if item["tok"] == nil {
			continue // not a lock
		}
		if waiting := wait(ctx, turn); waiting != nil {
			deletes.Wait()
			return "", errors.Join(err, waiting)
		}
		deletes.Go(func() {
			retired, failure := s.retire(ctx, item, now)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case failure != nil:
				err = failure
			case retired:
				swept.Retired++
			default:
				swept.Kept++
			}
		})
	}
	deletes.Wait()
	last := decoder{item: out.LastEvaluatedKey}
	return last.str("pk"), errors.Join(err, last.err)
}

// retire deletes an item unless it was used since it was looked at.
func (s *Sweeper) retire(ctx context.Context, item map[string]types.AttributeValue, now types.AttributeValue) (bool, error) {
	_, err := s.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                           &s.Table,
		Key:                                 map[string]types.AttributeValue{"pk": item["pk"]},
		ConditionExpression:                 aws.String("#tok = :tok AND #gc < :now"),
		ExpressionAttributeNames:            map[string]string{"#tok": "tok", "#gc": "gc"},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":tok": item["tok"], ":now": now},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var (
		failed   *types.ConditionalCheckFailedException
		conflict *types.ReplicatedWriteConflictException
	)
	switch {
	case errors.As(err, &failed):
		return len(failed.Item) == 0, nil // an attempt whose answer was lost has deleted it
	case errors.As(err, &conflict):
		return false, nil // somebody is using it in another Region
	}
	return err == nil, err
}

// wait waits for the next request's turn.
func wait(ctx context.Context, turn <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-turn:
		return nil
	}
}

func (s *Sweeper) recall(ctx context.Context) (from string, err error) {
	out, err := s.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.Table,
		Key:            map[string]types.AttributeValue{"pk": str(place)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return "", err
	}
	d := decoder{item: out.Item}
	return d.str("from"), d.err
}

func (s *Sweeper) remember(ctx context.Context, from string) error {
	_, err := s.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.Table,
		Item:      map[string]types.AttributeValue{"pk": str(place), "from": str(from)},
	})
	return err
}
