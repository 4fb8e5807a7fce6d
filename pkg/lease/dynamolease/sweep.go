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
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
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
	// what holders need: 1 to 10000. Zero means 50.
	Rate float64

	// Page is how many items one request looks at, up to 1000. Zero means 100.
	Page int32

	// Now reads the clock. Nil means [time.Now].
	Now func() time.Time
}

// Swept is what a sweep has done.
type Swept struct {
	Seen    int  // items looked at, those in use included
	Retired int  // items deleted
	Kept    int  // items that changed between the look and the delete
	Done    bool // it came to the end of the table: the next one starts again

	// Began is when the pass over the table began that this sweep went on with.
	// A pass that does not come to its end for a day is too slow.
	Began time.Time
}

const (
	// SweeperKey is the key of the item that says where the next sweep goes on.
	// The key of a lock has a '#', and without [RetireAttribute] nothing retires
	// this one.
	SweeperKey = "sweeper"

	// remembering is what is left of a deadline to write that item in.
	remembering = 5 * time.Second

	// maxAhead is how far the time of a sweep may be ahead of this host: as far as
	// two hosts may be apart.
	maxAhead = time.Minute
)

// A place is how far a pass over the table has come: to an item, or to its
// beginning.
type place struct {
	from  string
	began protocol.Instant
}

// check refuses what would delete too early, too fast, or nothing.
func (s *Sweeper) check(at time.Time) error {
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	var err error
	switch {
	case s.Client == nil:
		err = errors.New("the sweeper has no Client")
	case s.Table == "":
		err = errors.New("the sweeper has no Table")
	case s.Rate != 0 && !(s.Rate >= 1 && s.Rate <= 10_000): // NaN is not
		err = fmt.Errorf("the Rate is %v a second, want 1 to 10000", s.Rate)
	case s.Page < 0 || s.Page > 1000:
		err = fmt.Errorf("the Page is %d items, want up to 1000", s.Page)
	case !protocol.ValidTime(at):
		err = fmt.Errorf("the time to sweep by is %v, want one from 2020 to 2100", at)
	case at.After(now.Add(maxAhead)):
		err = fmt.Errorf("the time to sweep by is %v, after %v, which is now: tokens could come again", at, now)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", lease.ErrMisconfigured, err)
	}
	return nil
}

// Sweep goes on where the last sweep stopped, and deletes what was to be retired
// before now, until it comes to the end of the table or close to the deadline of
// ctx. An error stops it too; the next sweep repeats what this one did not
// finish. Two at a time do no harm, and the same work.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (swept Swept, err error) {
	if err := s.check(now); err != nil {
		return Swept{}, fmt.Errorf("dynamolease: sweep: %w", err)
	}
	limited := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, deadline.Add(-remembering))
		defer cancel()
	}
	turn := time.NewTicker(time.Duration(float64(time.Second) / cmp.Or(s.Rate, 50)))
	defer turn.Stop()
	started, err := s.recall(ctx)
	if err != nil {
		return Swept{}, fmt.Errorf("dynamolease: sweep %q: %w", s.Table, err)
	}
	at := started
	if at.began == 0 {
		at.began = protocol.At(now)
	}
	swept.Began = at.began.Time()
	for err == nil && !swept.Done {
		var next string
		if next, err = s.page(limited, turn.C, at.from, num(protocol.At(now)/1000), &swept); err == nil {
			at.from, swept.Done = next, next == ""
		}
	}
	if swept.Done {
		at = place{} // the next pass begins with the next sweep
	}
	switch timeUp := limited.Err() != nil && ctx.Err() == nil; {
	case timeUp && swept.Seen == 0 && !swept.Done:
		err = fmt.Errorf("the deadline is too near to look at anything: %v of it are to write down the place", remembering)
	case timeUp:
		err = nil // what was under way is repeated
	}
	if at != started {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remembering)
		defer cancel()
		err = errors.Join(err, s.remember(ctx, at))
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
		ProjectionExpression:      aws.String("#pk, #tok, #x"),
		FilterExpression:          aws.String("#gc < :now"),
		ExpressionAttributeNames:  map[string]string{"#pk": KeyAttribute, "#tok": "tok", "#x": "x", "#gc": RetireAttribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":now": now},
	}
	if from != "" {
		in.ExclusiveStartKey = map[string]types.AttributeValue{KeyAttribute: str(from)}
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
		if item["tok"] == nil && item["x"] == nil {
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
	return last.str(KeyAttribute), errors.Join(err, last.err)
}

// retire deletes an item unless it was used since it was looked at.
func (s *Sweeper) retire(ctx context.Context, item map[string]types.AttributeValue, now types.AttributeValue) (bool, error) {
	token := item["tok"]
	if token == nil {
		token = num(0) // it has markers only: granted since, it has a token
	}
	_, err := s.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                           &s.Table,
		Key:                                 map[string]types.AttributeValue{KeyAttribute: item[KeyAttribute]},
		ConditionExpression:                 aws.String("(attribute_not_exists(#tok) OR #tok = :tok) AND #gc < :now"),
		ExpressionAttributeNames:            map[string]string{"#tok": "tok", "#gc": RetireAttribute},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":tok": token, ":now": now},
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

func (s *Sweeper) recall(ctx context.Context) (place, error) {
	out, err := s.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.Table,
		Key:            map[string]types.AttributeValue{KeyAttribute: str(SweeperKey)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return place{}, err
	}
	d := decoder{item: out.Item}
	return place{d.str("from"), protocol.Instant(d.num("began"))}, d.err
}

func (s *Sweeper) remember(ctx context.Context, p place) error {
	_, err := s.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.Table,
		Item:      map[string]types.AttributeValue{KeyAttribute: str(SweeperKey), "from": str(p.from), "began": num(p.began)},
	})
	return err
}
