package dynamolease

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// update executes c on the item of n and returns the record after it, or, with
// errRefused or errRefusedAfter, the record that did not meet its condition.
func (s *Store) update(ctx context.Context, n lease.Name, c change) (lease.Record, error) {
	var out *dynamodb.UpdateItemOutput
	var a attempts
	err := s.request(ctx, &a, func(options func(*dynamodb.Options)) (err error) {
		out, err = s.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                           &s.Table,
			Key:                                 key(n),
			UpdateExpression:                    &c.update,
			ConditionExpression:                 &c.condition,
			ExpressionAttributeNames:            c.names,
			ExpressionAttributeValues:           c.values,
			ReturnValues:                        types.ReturnValueAllNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, options)
		return err
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		r, err := decode(failed.Item)
		switch {
		case err != nil:
			return r, err
		case a.unknown:
			return r, errRefusedAfter
		}
		return r, errRefused
	}
	if err != nil {
		return lease.Record{}, err
	}
	if len(out.Attributes) == 0 { // then it was not DynamoDB that answered
		return lease.Record{}, outcomeUnknown("an answer without the item")
	}
	return decode(out.Attributes)
}

// read returns the record of n as of now.
func (s *Store) read(ctx context.Context, n lease.Name) (lease.Record, lease.Instant, error) {
	var out *dynamodb.GetItemOutput
	err := s.request(ctx, &attempts{reads: true}, func(options func(*dynamodb.Options)) (err error) {
		out, err = s.Client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName:      &s.Table,
			Key:            key(n),
			ConsistentRead: aws.Bool(true),
		}, options)
		return err
	})
	if err != nil {
		return lease.Record{}, 0, err
	}
	r, err := decode(out.Item)
	return r, s.now(), err
}

// Get implements [lease.Service] in one strongly consistent read.
func (s *Store) Get(ctx context.Context, n lease.Name) (lease.State, error) {
	if err := n.Validate(); err != nil {
		return lease.State{}, err
	}
	r, now, err := s.read(ctx, n)
	if err != nil {
		return lease.State{}, err
	}
	return r.State(n, now), nil
}

func (s *Store) now() lease.Instant {
	if s.Now != nil {
		return lease.At(s.Now())
	}
	return lease.At(time.Now())
}

// request runs one operation of the SDK, counts what it costs for the call of
// ctx, and says what an error means for the item.
func (s *Store) request(ctx context.Context, a *attempts, operation func(options func(*dynamodb.Options)) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	started := time.Now()
	err := operation(func(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, a.watch) })
	call := lease.CallFrom(ctx)
	call.Requests += a.sent
	call.StoreTime += time.Since(started)
	s.clock.learn(a)
	switch {
	case err == nil:
		return nil
	case a.sent == 0 && ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return a.meaning(err)
}

// attempts are what the SDK's retries of one operation came to. The last error
// alone does not tell: a throttled attempt may follow one that timed out and
// was applied.
type attempts struct {
	reads   bool // they change nothing
	sent    int
	unknown bool // one of them may have been applied

	dated       bool // an answer told the time:
	least, most time.Duration
}

// watch puts a on both sides of what an attempt consists of: inside of the
// retries, and just before the request is sent.
func (a *attempts) watch(stack *middleware.Stack) error {
	err := stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("pawlAttempt", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		before := a.sent
		out, metadata, err := next.HandleFinalize(ctx, in)
		if err != nil && a.sent > before && !refused(err) && !unreachable(err) {
			a.unknown = true
		}
		return out, metadata, err
	}), "Retry", middleware.After)
	if err != nil {
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("pawlSend", func(
		ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (middleware.DeserializeOutput, middleware.Metadata, error) {
		a.sent++
		sent := time.Now()
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if r, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil {
			a.date(r.Header.Get("Date"), sent, time.Now())
			err = receive(r)
		}
		return out, metadata, err
	}), middleware.After)
}
