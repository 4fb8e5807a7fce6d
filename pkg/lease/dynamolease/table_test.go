package dynamolease_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// A table is a table of the test's own, and what was sent to it.
type table struct {
	testing.TB
	client *dynamodb.Client
	name   string
	sent   *sent
}

// newTable makes a table that is deleted when the test ends.
func newTable(t testing.TB) table {
	t.Helper()
	o := localtest.DynamoDBForTest(t).Options()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
	t.Cleanup(transport.CloseIdleConnections)
	s := &sent{client: http.Client{Transport: transport, Timeout: 30 * time.Second}}
	o.HTTPClient = s
	x := table{t, dynamolease.NewClientFrom(o), "pawl-test-" + rand.Text(), s}
	if err := dynamolease.CreateTable(t.Context(), x.client, x.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := x.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &x.name}); err != nil {
			t.Errorf("left behind table %s: %v", x.name, err)
		}
	})
	s.take()
	return x
}

// store returns a store whose clock reads now, and its pointer is for turning it.
func (x table) store(now *protocol.Instant, rules protocol.Rules) *dynamolease.Store {
	s := &dynamolease.Store{Table: x.name, Rules: rules}
	if now != nil {
		s.Now = func() time.Time { return now.Time() }
	}
	s.Client = following(s, x.client.Options())
	warm(x, s)
	return s
}

// warm makes the request of a store that compares the clocks, where no gateway
// has told the time: tests count from the next.
func warm(t testing.TB, s *dynamolease.Store) {
	t.Helper()
	if _, err := s.Get(context.Background(), lease.Name{Namespace: "clock", Lock: "clock"}); err != nil {
		t.Fatal(err)
	}
}

// following returns a client whose answers are dated by the clock of the store,
// whatever that reads.
func following(s *dynamolease.Store, o dynamodb.Options) *dynamodb.Client {
	if o.HTTPClient != nil {
		o.HTTPClient = dated{o.HTTPClient, func() time.Time {
			if s.Now != nil {
				return s.Now()
			}
			return time.Now()
		}}
	}
	return dynamolease.NewClientFrom(o)
}

// dated is an HTTP client whose answers tell the time of a clock.
type dated struct {
	dynamodb.HTTPClient
	now func() time.Time
}

// Do sends a request of the SDK.
func (d dated) Do(r *http.Request) (*http.Response, error) {
	a, err := d.HTTPClient.Do(r)
	if err == nil {
		a.Header.Set("Date", d.now().UTC().Format(http.TimeFormat))
	}
	return a, err
}

func itemKey(n lease.Name) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: n.Namespace + "#" + n.Lock}}
}

// item reads what is stored of n, past the store.
func (x table) item(n lease.Name) map[string]types.AttributeValue {
	x.Helper()
	out, err := x.client.GetItem(x.Context(), &dynamodb.GetItemInput{TableName: &x.name, Key: itemKey(n), ConsistentRead: aws.Bool(true)})
	if err != nil {
		x.Fatal(err)
	}
	return out.Item
}

// forget deletes what is stored of n, as the table's TTL does.
func (x table) forget(n lease.Name) {
	x.Helper()
	if _, err := x.client.DeleteItem(x.Context(), &dynamodb.DeleteItemInput{TableName: &x.name, Key: itemKey(n)}); err != nil {
		x.Fatal(err)
	}
}

// put stores an item that no store has written.
func (x table) put(n lease.Name, attributes map[string]types.AttributeValue) {
	x.Helper()
	item := itemKey(n)
	for name, value := range attributes {
		item[name] = value
	}
	if _, err := x.client.PutItem(x.Context(), &dynamodb.PutItemInput{TableName: &x.name, Item: item}); err != nil {
		x.Fatal(err)
	}
}

// sent is an HTTP client that notes the operation of every request.
type sent struct {
	client     http.Client
	mu         sync.Mutex
	operations []string
}

// Do sends a request of the SDK.
func (s *sent) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	s.operations = append(s.operations, operation)
	s.mu.Unlock()
	return s.client.Do(r)
}

// take returns what was sent since the last take.
func (s *sent) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	operations := slices.Clone(s.operations)
	s.operations = s.operations[:0]
	return operations
}

// toldApart are the errors of a store that are told apart.
var toldApart = map[string]error{
	"held": lease.ErrHeld, "lost": lease.ErrLost, "expired": lease.ErrExpired, "spent": lease.ErrRequestSpent,
	"conflict": lease.ErrRequestConflict, "token changed": lease.ErrTokenChanged, "invalid": lease.ErrInvalid,
	"throttled": lease.ErrThrottled, "unavailable": lease.ErrUnavailable, "clock skew": lease.ErrClockSkew,
	"quarantine": lease.ErrQuarantine, "misconfigured": lease.ErrMisconfigured, "unknown": lease.ErrOutcomeUnknown,
}

// sameError checks that two errors mean the same, to the last detail.
func sameError(got, want error) bool {
	for _, o := range toldApart {
		if errors.Is(got, o) != errors.Is(want, o) {
			return false
		}
	}
	var held, wantHeld *lease.HeldError
	if errors.As(got, &held) != errors.As(want, &wantHeld) || held != nil && *held != *wantHeld {
		return false
	}
	var changed, wantChanged *lease.TokenChangedError
	if errors.As(got, &changed) != errors.As(want, &wantChanged) || changed != nil && *changed != *wantChanged {
		return false
	}
	if lease.KnownLost(got) != lease.KnownLost(want) {
		return false
	}
	var retry, wantRetry *lease.RetryError
	if errors.As(got, &retry) != errors.As(want, &wantRetry) || retry != nil && retry.After != wantRetry.After {
		return false
	}
	return (got == nil) == (want == nil)
}
