package dynamolease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/internal/connect"
)

// throttles are the codes by which DynamoDB refuses a request for now. The last
// two tell of a conflict with another request on the same item.
var throttles = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"ThrottlingException":                    true,
	"RequestLimitExceeded":                   true,
	"ReplicatedWriteConflictException":       true,
	"TransactionConflictException":           true,
}

// meaning translates the last error of an operation into what it says of the
// item. A condition that failed is left as it is: the item that comes with it
// tells whether an earlier attempt was applied.
func (a *attempts) meaning(err error) error {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return err
	}
	kind, after := lease.ErrMisconfigured, time.Duration(0)
	var api smithy.APIError
	switch {
	case a.unknown && a.reads:
		kind, after = lease.ErrUnavailable, time.Second
	case a.unknown:
		kind, after = lease.ErrOutcomeUnknown, time.Second
	case errors.As(err, &api) && throttles[api.ErrorCode()]:
		kind, after = lease.ErrThrottled, time.Second
	case connect.Untrusted(err):
	case connect.Failed(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The context ended between two attempts that were refused.
		kind, after = lease.ErrUnavailable, time.Second
	}
	err = fmt.Errorf("%w: dynamodb: %w", kind, err)
	if after == 0 {
		return err
	}
	return &lease.RetryError{Err: err, After: after}
}

// outcomeUnknown is for what only the answer would have told.
func outcomeUnknown(reason error) error {
	return &lease.RetryError{Err: fmt.Errorf("%w: dynamodb: %w", lease.ErrOutcomeUnknown, reason), After: time.Second}
}

// refused reports whether DynamoDB answered that it changed nothing: with a 4xx
// that names an error. One without a name is from something in between.
func refused(err error) bool {
	var answer *smithyhttp.ResponseError
	var api smithy.APIError
	return errors.As(err, &answer) && answer.HTTPStatusCode() < 500 &&
		errors.As(err, &api) && api.ErrorCode() != "UnknownError"
}
