package dynamolease_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/localtest/faultproxy"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// An outcome is what becomes of an operation when its attempts meet a fault.
type outcome struct {
	name     string
	fault    faultproxy.Fault
	means    error // when every attempt meets it; for a read, unknown is unavailable
	attempts int   // how many are made
	applied  bool  // the change is made all the same
}

var outcomes = []outcome{
	{"the request is lost", faultproxy.Drop, lease.ErrOutcomeUnknown, 3, false},
	{"the request is lost with a reset", faultproxy.Reset, lease.ErrOutcomeUnknown, 3, false},
	{"the request is lost in silence", faultproxy.Hang, lease.ErrOutcomeUnknown, 3, false},
	{"the answer is lost", faultproxy.After(faultproxy.Drop), lease.ErrOutcomeUnknown, 3, true},
	{"the answer is lost with a reset", faultproxy.After(faultproxy.Reset), lease.ErrOutcomeUnknown, 3, true},
	{"the answer is lost in silence", faultproxy.After(faultproxy.Hang), lease.ErrOutcomeUnknown, 3, true},
	{"the answer is cut off", faultproxy.Truncate, lease.ErrOutcomeUnknown, 3, true},
	{"the answer is damaged", faultproxy.Corrupt, lease.ErrOutcomeUnknown, 3, true},
	{"the answer is empty", faultproxy.After(faultproxy.Say(200, "application/x-amz-json-1.0", "")), lease.ErrOutcomeUnknown, 3, true},
	{"the answer is no JSON", faultproxy.After(faultproxy.Say(200, "text/html", "<html>Welcome to our hotel</html>")), lease.ErrOutcomeUnknown, 1, true},
	{"an internal error without the change", faultproxy.Refuse(500, "InternalServerError"), lease.ErrOutcomeUnknown, 3, false},
	{"an internal error after the change", faultproxy.After(faultproxy.Refuse(500, "InternalServerError")), lease.ErrOutcomeUnknown, 3, true},
	{"unavailable", faultproxy.Refuse(503, "ServiceUnavailable"), lease.ErrOutcomeUnknown, 3, false},
	{"a middlebox has no connection", faultproxy.Say(503, "text/html", "<html>Service Unavailable</html>"), lease.ErrOutcomeUnknown, 3, false},
	{"a middlebox gave up", faultproxy.After(faultproxy.Say(504, "text/html", "<html>Gateway Timeout</html>")), lease.ErrOutcomeUnknown, 3, true},
	{"a middlebox does not like the request", faultproxy.Say(400, "text/html", "<html>Bad Request</html>"), lease.ErrOutcomeUnknown, 1, false},
	{"a middlebox does not like the answer", faultproxy.After(faultproxy.Say(403, "text/html", "<html>Forbidden</html>")), lease.ErrOutcomeUnknown, 1, true},
	{"a refusal without a name", faultproxy.Say(400, "application/json", "{}"), lease.ErrOutcomeUnknown, 1, false},
	{"throttled by the table", faultproxy.Refuse(400, "ProvisionedThroughputExceededException"), lease.ErrThrottled, 3, false},
	{"throttled by the service", faultproxy.Refuse(400, "ThrottlingException"), lease.ErrThrottled, 3, false},
	{"throttled by the account", faultproxy.Refuse(400, "RequestLimitExceeded"), lease.ErrThrottled, 3, false},
	{"a conflict with another Region", faultproxy.Refuse(400, "ReplicatedWriteConflictException"), lease.ErrThrottled, 3, false},
	{"a conflict with a transaction", faultproxy.Refuse(400, "TransactionConflictException"), lease.ErrThrottled, 3, false},
	{"an invalid request", faultproxy.Refuse(400, "ValidationException"), lease.ErrMisconfigured, 1, false},
	{"no such table", faultproxy.Refuse(400, "ResourceNotFoundException"), lease.ErrMisconfigured, 1, false},
	{"access denied", faultproxy.Refuse(400, "AccessDeniedException"), lease.ErrMisconfigured, 1, false},
	{"the request arrives twice", faultproxy.Twice, nil, 1, true},
	{"the request arrives again later", new(faultproxy.Late).Copy, nil, 1, true},
}

// An operation is one method of the service, in a state in which it has
// something to do.
type operation struct {
	name string
	sent string // the operation of DynamoDB
	held bool   // the lock is, before
	call func(context.Context, lease.Service, lease.AcquireRequest, lease.Lease) (lease.Lease, error)
	done func(before lease.Lease, after lease.State) bool
}

var operations = []operation{
	{"acquire", write, false, func(ctx context.Context, s lease.Service, q lease.AcquireRequest, _ lease.Lease) (lease.Lease, error) {
		return s.Acquire(ctx, q)
	}, func(_ lease.Lease, s lease.State) bool { return s.Held }},
	{"renew", write, true, func(ctx context.Context, s lease.Service, _ lease.AcquireRequest, l lease.Lease) (lease.Lease, error) {
		return s.Renew(ctx, renewalOf(l, time.Hour))
	}, func(l lease.Lease, s lease.State) bool { return s.ExpiresAt.After(l.ExpiresAt) }},
	{"release", write, true, func(ctx context.Context, s lease.Service, _ lease.AcquireRequest, l lease.Lease) (lease.Lease, error) {
		state, err := s.Release(ctx, releaseOf(l))
		return lease.Lease{Token: state.Token}, err
	}, func(_ lease.Lease, s lease.State) bool { return !s.Held }},
	{"break", write, true, func(ctx context.Context, s lease.Service, _ lease.AcquireRequest, l lease.Lease) (lease.Lease, error) {
		broken, err := s.Break(ctx, breakOf(l))
		return lease.Lease{Token: broken.Token, Repeated: broken.AlreadyFree}, err
	}, func(l lease.Lease, s lease.State) bool { return !s.Held && s.Token > l.Token }},
	{"get", read, true, func(ctx context.Context, s lease.Service, _ lease.AcquireRequest, l lease.Lease) (lease.Lease, error) {
		state, err := s.Get(ctx, l.Name)
		return lease.Lease{Token: state.Token}, err
	}, func(l lease.Lease, s lease.State) bool { return s.Held && s.Token == l.Token }},
}

// patience is that of a client for the outcome.
func (o outcome) patience() func(*dynamodb.Options) {
	if strings.HasSuffix(o.name, "in silence") {
		return impatient
	}
	return patient
}

// prepare returns a line for the operation, with what it needs.
func (op operation) prepare(t *testing.T, changes ...func(*dynamodb.Options)) (l line, q lease.AcquireRequest, before lease.Lease) {
	t.Helper()
	l = newLine(t, changes...)
	if before.Name = l.Name; op.held {
		before = l.take()
	}
	return l, l.request(), before
}

// eachOperation runs a check for all operations at once: most of the time they
// wait. The check must not end the test.
func eachOperation(t *testing.T, check func(l line, op operation, q lease.AcquireRequest, before lease.Lease), changes ...func(*dynamodb.Options)) {
	t.Helper()
	var checks sync.WaitGroup
	defer checks.Wait()
	for _, op := range operations {
		l, q, before := op.prepare(t, changes...)
		checks.Go(func() { check(l, op, q, before) })
	}
}

func TestAFaultOfEveryAttemptIsReportedForWhatItMeans(t *testing.T) {
	for _, o := range outcomes {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
				l.proxy.Every(op.sent, o.fault)
				call := new(lease.Call)
				got, err := op.call(lease.WithCall(t.Context(), call), l.store, q, before)
				want := o.means
				if want == lease.ErrOutcomeUnknown && op.sent == read {
					want = lease.ErrUnavailable
				}
				l.means(op.name, err, want)
				if n := len(l.proxy.Seen(op.sent)); n != o.attempts || call.Requests != n {
					t.Errorf("%s: %d attempts arrived and %d were counted, want %d", op.name, n, call.Requests, o.attempts)
				}
				alike(t, op, l.proxy)
				after, err := l.direct.Get(t.Context(), l.Name)
				if err != nil {
					t.Error(err)
				}
				if op.sent == write && op.done(before, after) != o.applied {
					t.Errorf("%s: the lock is %s, want the change made: %v", op.name, show(after), o.applied)
				}
				if want == nil && got.Token != after.Token {
					t.Errorf("%s: got token %d of %s", op.name, got.Token, show(after))
				}
				l.proxy.Every(op.sent, faultproxy.Pass)
				repeats(l, op, q, before, after, o.applied)
			}, o.patience())
		})
	}
}

// repeats checks that the caller who repeats a call gets what it asked for,
// once.
func repeats(l line, op operation, q lease.AcquireRequest, before lease.Lease, seen lease.State, applied bool) {
	got, err := op.call(l.Context(), l.store, q, before)
	if err != nil {
		l.Errorf("%s, repeated: %v", op.name, err)
		return
	}
	after, err := l.direct.Get(l.Context(), l.Name)
	if err != nil || !op.done(before, after) || got.Token != after.Token {
		l.Errorf("%s, repeated: got token %d, the lock is %s, %v", op.name, got.Token, show(after), err)
	}
	if applied && after.Token != seen.Token {
		l.Errorf("%s, repeated: token %d became %d", op.name, seen.Token, after.Token)
	}
	if repeatable := op.name == "acquire" || op.name == "break"; repeatable && got.Repeated != applied {
		l.Errorf("%s, repeated: says done before: %v, want %v", op.name, got.Repeated, applied)
	}
	if n := l.proxy.Done(op.sent); op.sent == write && op.name != "renew" && n != 1 {
		l.Errorf("%s: carried out %d times", op.name, n)
	}
}

func TestAFaultOfOneAttemptIsNotNoticed(t *testing.T) {
	for _, o := range outcomes {
		if o.attempts == 1 {
			continue // it is not tried again
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
				l.proxy.Next(op.sent, o.fault)
				got, err := op.call(t.Context(), l.store, q, before)
				if err != nil {
					t.Errorf("%s: %v", op.name, err)
					return
				}
				after, err := l.direct.Get(t.Context(), l.Name)
				if err != nil || !op.done(before, after) || got.Token != after.Token {
					t.Errorf("%s: got token %d, the lock is %s, %v", op.name, got.Token, show(after), err)
				}
				if got.Repeated {
					t.Errorf("%s: says that it had been done before this call", op.name)
				}
				if n := l.proxy.Done(write); op.sent == write && n != 1 {
					t.Errorf("%s: carried out %d times", op.name, n)
				}
				if n := len(l.proxy.Seen(op.sent)); n < 2 {
					t.Errorf("%s: %d attempts, want 2", op.name, n)
				}
				alike(t, op, l.proxy)
			}, o.patience())
		})
	}
}

// alike checks that all attempts were one request, with one request id and one
// lease id.
func alike(t *testing.T, op operation, p *faultproxy.Proxy) {
	seen := p.Seen(op.sent)
	for _, x := range seen {
		if !bytes.Equal(x.Body, seen[0].Body) {
			t.Errorf("%s: two attempts differ:\n%s\n%s", op.name, seen[0].Body, x.Body)
		}
	}
}

func TestAFaultThatNobodyCausesIsNone(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(l line, op operation, q lease.AcquireRequest, before lease.Lease) {
		if _, err := op.call(t.Context(), l.store, q, before); err != nil {
			t.Errorf("%s: %v", op.name, err)
		}
		if n := len(l.proxy.Seen(op.sent)); n != 1 {
			t.Errorf("%s: %d requests, want 1", op.name, n)
		}
	})
}
