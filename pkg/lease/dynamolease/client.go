package dynamolease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// NewClient returns a DynamoDB client fit for locks. All that cfg says counts: the
// endpoints of the environment, AWS_ENDPOINT_URL_DYNAMODB among them, FIPS and
// dual stack, certificates, middleware. Unless cfg has its own, the client gets
//
//   - an HTTP client that gives up on an attempt after one second: the SDK's own
//     has no limit, so that a single lost packet outlasts a lease;
//   - a retryer of 3 attempts that waits at most 200 ms in between: by default
//     throttling is answered with pauses of up to 4.8 s. It also repeats what
//     multi-Region strong consistency refuses because of a conflict.
//
// An error that someone has to repair names the table, the Region and the
// endpoint.
func NewClient(cfg aws.Config, options ...func(*dynamodb.Options)) *dynamodb.Client {
	switch h := cfg.HTTPClient.(type) {
	case nil:
		cfg.HTTPClient = hasty(awshttp.NewBuildableClient())
	case *awshttp.BuildableClient: // with the certificates of the environment
		if h.GetTimeout() == 0 {
			cfg.HTTPClient = hasty(h)
		}
	}
	if cfg.Retryer == nil && cfg.RetryMode == "" {
		cfg.Retryer = briefly
	}
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), nameTable(cfg.Region))
	return dynamodb.NewFromConfig(cfg, options...)
}

// NewClientFrom is NewClient for a program that knows its Region and its
// credentials without a configuration, and so starts faster.
func NewClientFrom(o dynamodb.Options) *dynamodb.Client {
	if o.HTTPClient == nil {
		o.HTTPClient = hasty(awshttp.NewBuildableClient())
	}
	if o.Retryer == nil {
		o.Retryer = briefly()
	}
	o.APIOptions = append(slices.Clip(o.APIOptions), nameTable(o.Region))
	return dynamodb.New(o)
}

func hasty(h *awshttp.BuildableClient) *awshttp.BuildableClient {
	return h.WithTimeout(time.Second).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = 500 * time.Millisecond }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = 800 * time.Millisecond
			t.MaxIdleConnsPerHost = 64
		})
}

func briefly() aws.Retryer {
	return retry.AddWithErrorCodes(retry.NewStandard(func(s *retry.StandardOptions) {
		s.MaxAttempts, s.BaseDelay, s.MaxBackoff = 3, 25*time.Millisecond, 200*time.Millisecond
	}), "ReplicatedWriteConflictException", "TransactionConflictException")
}

// repairs are the codes of what someone has to repair: it is the wrong table, the
// wrong place to look for it, or the wrong caller.
var repairs = []string{"ResourceNotFoundException", "AccessDeniedException", "UnrecognizedClientException"}

// nameTable has such an error say which table was asked for, and where. DynamoDB
// itself says only that a resource was not found.
func nameTable(region string) func(*middleware.Stack) error {
	type tableKey struct{}
	return func(stack *middleware.Stack) error {
		err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("pawlTable", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			var table *string
			switch q := in.Parameters.(type) {
			case *dynamodb.UpdateItemInput:
				table = q.TableName
			case *dynamodb.GetItemInput:
				table = q.TableName
			}
			return next.HandleInitialize(middleware.WithStackValue(ctx, tableKey{}, table), in)
		}), middleware.Before)
		if err != nil {
			return err
		}
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("pawlWhere", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleFinalize(ctx, in)
			var api smithy.APIError
			table, _ := middleware.GetStackValue(ctx, tableKey{}).(*string)
			if r, ok := in.Request.(*smithyhttp.Request); ok && table != nil && errors.As(err, &api) && slices.Contains(repairs, api.ErrorCode()) {
				err = fmt.Errorf("table %q in %s (%s://%s): %w", *table, region, r.URL.Scheme, r.URL.Host, err)
			}
			return out, metadata, err
		}), middleware.After)
	}
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
