package dynamolease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// unknownFor is what an operation without an answer comes to.
func unknownFor(op operation) error {
	if op.sent == read {
		return lease.ErrUnavailable
	}
	return lease.ErrOutcomeUnknown
}

func TestAFaultySilenceEndsInAFewSeconds(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
		l.proxy.Every(op.sent, faultproxy.Hang)
		started := time.Now()
		_, err := op.call(t.Context(), l.store, q, before)
		took := time.Since(started)
		l.means(op.name, err, unknownFor(op))
		if took < 2900*time.Millisecond || took > 5*time.Second {
			t.Errorf("%s: took %v, want 3 attempts of 1s and short pauses", op.name, took)
		}
	}, normal)
}

func TestPausesBetweenFaultyAttemptsAreShort(t *testing.T) {
	r := dynamolease.NewClientFrom(dynamodb.Options{Region: "us-east-1"}).Options().Retryer
	for _, code := range []string{"ThrottlingException", "ReplicatedWriteConflictException", "InternalServerError"} {
		for attempt := range r.MaxAttempts() {
			for range 20 { // they are random
				d, err := r.RetryDelay(attempt+1, &smithy.GenericAPIError{Code: code})
				if err != nil || d < 0 || d > 200*time.Millisecond {
					t.Fatalf("after attempt %d, %s: got a pause of %v, error %v, want at most 200ms", attempt+1, code, d, err)
				}
			}
		}
	}
}

func TestAFaultySilenceEndsWithTheDeadline(t *testing.T) {
	for _, c := range []struct {
		name     string
		limit    time.Duration
		attempts int
	}{
		{"in the first attempt", 400 * time.Millisecond, 1},
		{"in the second attempt", 1500 * time.Millisecond, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
				l.proxy.Every(op.sent, faultproxy.Hang)
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				_, err := op.call(ctx, l.store, q, before)
				if n := len(l.proxy.Seen(op.sent)); n != c.attempts || ctx.Err() == nil {
					t.Errorf("%s: ended after %d attempts, and its context with %v; want %d and an end", op.name, n, ctx.Err(), c.attempts)
				}
				l.means(op.name, err, unknownFor(op))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: got error %v, want context.DeadlineExceeded in it", op.name, err)
				}
			}, normal)
		})
	}
}

func TestAFaultySilenceEndsWhenTheCallerLeaves(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l.proxy.Every(op.sent, func(x *faultproxy.Exchange) {
			cancel()
			x.Await()
		})
		_, err := op.call(ctx, l.store, q, before)
		l.means(op.name, err, unknownFor(op))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want context.Canceled in it", op.name, err)
		}
	})
}

func TestWithoutAnyFaultACallerThatHasLeftSendsNothing(t *testing.T) {
	t.Parallel()
	left := errors.New("the caller has left")
	for name, leave := range map[string]func(cancel func()) func(*dynamodb.Options){
		"before the call": func(cancel func()) func(*dynamodb.Options) {
			cancel()
			return func(*dynamodb.Options) {}
		},
		"before it is signed": func(cancel func()) func(*dynamodb.Options) {
			return func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
					cancel()
					return aws.Credentials{}, ctx.Err()
				})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, op := range operations {
				ctx, cancel := context.WithCancelCause(t.Context())
				l, q, before := op.prepare(t, leave(func() { cancel(left) }))
				call := new(lease.Call)
				_, err := op.call(lease.WithCall(ctx, call), l.store, q, before)
				if err != left {
					t.Errorf("%s: got error %v, want the cause of the context and nothing else", op.name, err)
				}
				if n := len(l.proxy.Seen(op.sent)); n != 0 || call.Requests != 0 {
					t.Errorf("%s: %d requests arrived and %d were counted, want none", op.name, n, call.Requests)
				}
			}
		})
	}
}
