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
	"github.com/pawl-lock/pawl/pkg/lease/internal/connect"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// An outcome is what DynamoDB answered to an update.
type outcome struct {
	// What the update was to return of the item, or the item that did not meet
	// its condition.
	protocol.Record

	refused bool // its condition failed

	// unanswered says that it was refused after an attempt that had no answer:
	// what the condition failed on may be what that attempt has done.
	unanswered bool

	skew error // the time of the answer, if that does not agree with this clock
}

// update executes c on the item of n.
func (s *Store) update(ctx context.Context, n lease.Name, c change) (outcome, error) {
	var out *dynamodb.UpdateItemOutput
	var a attempts
	returns := types.ReturnValueAllNew
	if c.before {
		returns = types.ReturnValueAllOld
	}
	err := s.request(ctx, &a, func(options func(*dynamodb.Options)) (err error) {
		out, err = s.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                           &s.Table,
			Key:                                 key(n),
			UpdateExpression:                    &c.update,
			ConditionExpression:                 &c.condition,
			ExpressionAttributeNames:            c.names,
			ExpressionAttributeValues:           c.values,
			ReturnValues:                        returns,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, options)
		return err
	})
	o := outcome{skew: a.skew}
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		o.refused, o.unanswered = true, a.unknown
		if o.Record, err = decode(failed.Item); err != nil && a.unknown {
			err = outcomeUnknown(err)
		}
	case err == nil && len(out.Attributes) == 0: // then it was not DynamoDB that answered
		err = outcomeUnknown(errors.New("an answer without the item"))
	case err == nil:
		if o.Record, err = decode(out.Attributes); err != nil {
			err = outcomeUnknown(err) // it was carried out all the same
		}
	}
	return o, err
}

// read returns the record of n as of now.
func (s *Store) read(ctx context.Context, n lease.Name) (protocol.Record, protocol.Instant, error) {
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
		return protocol.Record{}, 0, err
	}
	r, err := decode(out.Item)
	return r, s.now(), err
}

// Get implements [lease.Service] in one strongly consistent read.
func (s *Store) Get(ctx context.Context, n lease.Name) (lease.State, error) {
	if err := s.check(); err != nil {
		return lease.State{}, err
	}
	if err := n.Validate(); err != nil {
		return lease.State{}, err
	}
	r, now, err := s.read(ctx, n)
	if err != nil {
		return lease.State{}, err
	}
	return r.State(n, now), nil
}

// request runs one operation of the SDK, counts what it costs for the call of
// ctx, and says what an error means for the item.
func (s *Store) request(ctx context.Context, a *attempts, operation func(options func(*dynamodb.Options)) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	started := time.Now()
	err := operation(func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error { return s.watch(a, stack) })
	})
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

	// Of the last answer:
	answered, dated bool
	received        time.Time // if it is dated
	skew            error     // if its time does not agree with this clock
}

// watch puts a on both sides of what an attempt consists of: inside of the
// retries, and just before the request is sent.
func (s *Store) watch(a *attempts, stack *middleware.Stack) error {
	err := stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("pawlAttempt", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		before := a.sent
		out, metadata, err := next.HandleFinalize(ctx, in)
		if err != nil && a.sent > before && !refused(err) && !connect.Failed(err) {
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
		sent := s.time()
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if r, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil {
			s.date(a, r.Header.Get("Date"), sent, s.time())
			err = receive(r)
		}
		return out, metadata, err
	}), middleware.After)
}
