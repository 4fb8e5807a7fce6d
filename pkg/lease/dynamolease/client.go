package dynamolease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// NewClient returns a DynamoDB client fit for locks, made from o, in which
// Region and Credentials are required. Unless o has its own, it gets
//
//   - an HTTP client that gives up on an attempt after one second: the SDK's own
//     has no limit, so that a single lost packet outlasts a lease;
//   - a retryer of 3 attempts that waits at most 200 ms in between: by default
//     throttling is answered with pauses of up to 4.8 s. It also repeats what
//     multi-Region strong consistency refuses because of a conflict.
func NewClient(o dynamodb.Options) *dynamodb.Client {
	if o.HTTPClient == nil {
		o.HTTPClient = awshttp.NewBuildableClient().
			WithTimeout(time.Second).
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = 500 * time.Millisecond }).
			WithTransportOptions(func(t *http.Transport) {
				t.TLSHandshakeTimeout = 800 * time.Millisecond
				t.MaxIdleConnsPerHost = 64
			})
	}
	if o.Retryer == nil {
		o.Retryer = retry.AddWithErrorCodes(retry.NewStandard(func(s *retry.StandardOptions) {
			s.MaxAttempts, s.BaseDelay, s.MaxBackoff = 3, 25*time.Millisecond, 200*time.Millisecond
		}), "ReplicatedWriteConflictException", "TransactionConflictException")
	}
	return dynamodb.New(o)
}

// CreateTable makes a table with the key that a [Store] needs and waits until it
// can be used. It is for development: a table in AWS also has point-in-time
// recovery, deletion protection and a TTL attribute, which the stacks in infra
// set. A table that exists already is left as it is.
func CreateTable(ctx context.Context, c *dynamodb.Client, name string) error {
	pk := KeyAttribute
	_, err := c.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &pk, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &pk, KeyType: types.KeyTypeHash}},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("dynamolease: create table %q: %w", name, err)
	}
	err = dynamodb.NewTableExistsWaiter(c).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, time.Minute,
		func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second })
	if err != nil {
		return fmt.Errorf("dynamolease: create table %q: %w", name, err)
	}
	return nil
}
