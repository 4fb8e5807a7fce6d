package dynamolease_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// What an acquire comes to depends on all its attempts, not on the last.
func TestAFaultIsRememberedThroughTheNextAttempts(t *testing.T) {
	type faults = []faultproxy.Fault
	throttle := faultproxy.Refuse(400, "ThrottlingException")
	deny := faultproxy.Refuse(400, "AccessDeniedException")
	conflict := faultproxy.Refuse(400, "ReplicatedWriteConflictException")
	lost, dropped := faultproxy.After(faultproxy.Drop), faultproxy.Fault(faultproxy.Drop)
	for _, c := range []struct {
		name   string
		faults faults
		means  error
		held   bool
	}{
		{"applied without an answer, then throttled", faults{lost, throttle, throttle}, lease.ErrOutcomeUnknown, true},
		{"throttled, then applied without an answer", faults{throttle, throttle, lost}, lease.ErrOutcomeUnknown, true},
		{"applied without an answer between two throttles", faults{throttle, lost, throttle}, lease.ErrOutcomeUnknown, true},
		{"lost, then throttled", faults{dropped, throttle, throttle}, lease.ErrOutcomeUnknown, false},
		{"applied without an answer, then in conflict", faults{lost, conflict, conflict}, lease.ErrOutcomeUnknown, true},
		{"applied without an answer, then denied", faults{lost, deny}, lease.ErrOutcomeUnknown, true},
		{"applied without an answer, throttled, then told", faults{lost, throttle}, nil, true},
		{"throttled, lost, then applied", faults{throttle, dropped}, nil, true},
		{"throttled, then denied", faults{throttle, deny}, lease.ErrMisconfigured, false},
		{"throttled and in conflict", faults{throttle, conflict, throttle}, lease.ErrThrottled, false},
		{"in conflict, then applied", faults{conflict, conflict}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t)
			q := l.request()
			l.proxy.Next(write, c.faults...)
			got, err := l.store.Acquire(t.Context(), q)
			l.means("acquire", err, c.means)
			s := l.state()
			if s.Held != c.held {
				t.Errorf("the lock is %s, want it held: %v", show(s), c.held)
			}
			if err != nil {
				got = must[lease.Lease](t)(l.store.Acquire(t.Context(), q))
			}
			l.heldBy(got)
			if n := l.proxy.Done(write); n != 1 || s.Held && s.Token != got.Token {
				t.Errorf("granted %d times, and token %d as %d", n, s.Token, got.Token)
			}
		})
	}
}

func TestAFaultBeforeAnythingIsSentChangesNothing(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
		store := &dynamolease.Store{Table: faultTable, Client: dynamolease.NewClientFrom(nobody(t))}
		_, err := op.call(t.Context(), store, q, before)
		l.means(op.name, err, lease.ErrUnavailable)
	})
}

func TestAFaultOfTheCredentialsChangesNothing(t *testing.T) {
	eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
		_, err := op.call(t.Context(), l.store, q, before)
		l.means(op.name, err, lease.ErrMisconfigured)
		if n := len(l.proxy.Seen(op.sent)); n != 0 {
			t.Errorf("%s: %d requests, want none", op.name, n)
		}
	}, func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("there are none")
		})
	})
}

// nobody returns the options to reach a port at which nobody listens.
func nobody(t *testing.T) dynamodb.Options {
	t.Helper()
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://" + listener.Addr().String()),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pawl", SecretAccessKey: "pawl"}, nil
		}),
	}
}

// onlyOnce lets a client connect once: then nobody listens any more.
func onlyOnce(o *dynamodb.Options) {
	var dialled atomic.Bool
	o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dialled.Swap(true) {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	})
}

func TestAFaultIsRememberedWhenNobodyListensAnyMore(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
		l.proxy.Next(op.sent, faultproxy.After(faultproxy.Drop))
		_, err := op.call(t.Context(), l.store, q, before)
		l.means(op.name, err, unknownFor(op))
	}, onlyOnce)
}

func TestAnAnswerThatIsNotOfDynamoDBIsAFault(t *testing.T) {
	for _, op := range operations {
		if op.sent == read {
			continue // to a read it says that nothing is recorded, and so does DynamoDB
		}
		l, q, before := op.prepare(t)
		l.proxy.Next(write, faultproxy.Say(200, "application/json", "{}"))
		_, err := op.call(t.Context(), l.store, q, before)
		l.means(op.name, err, lease.ErrOutcomeUnknown)
	}
}

// An interrupted retryer calls something when an attempt is about to be
// repeated.
type interrupted struct {
	aws.Retryer
	interrupt func()
}

func (r interrupted) RetryDelay(int, error) (time.Duration, error) {
	r.interrupt()
	return time.Minute, nil
}

func TestAFaultOutlastsTheCaller(t *testing.T) {
	for _, c := range []struct {
		name        string
		fault       faultproxy.Fault
		write, read error
	}{
		{"who leaves after a throttled attempt", faultproxy.Refuse(400, "ThrottlingException"), lease.ErrUnavailable, lease.ErrUnavailable},
		{"who leaves after a lost one", faultproxy.Drop, lease.ErrOutcomeUnknown, lease.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, op := range operations {
				ctx, cancel := context.WithCancel(t.Context())
				l, q, before := op.prepare(t, func(o *dynamodb.Options) {
					o.Retryer = interrupted{dynamolease.NewClientFrom(*o).Options().Retryer, cancel}
				})
				l.proxy.Every(op.sent, c.fault)
				_, err := op.call(ctx, l.store, q, before)
				want := c.write
				if op.sent == read {
					want = c.read
				}
				l.means(op.name, err, want)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s: got error %v, want context.Canceled in it", op.name, err)
				}
				if n := len(l.proxy.Seen(op.sent)); n != 1 {
					t.Errorf("%s: %d attempts, want 1", op.name, n)
				}
			}
		})
	}
}
