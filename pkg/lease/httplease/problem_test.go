package httplease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// failing is a service that answers everything with one error.
type failing struct{ err error }

func (f failing) Acquire(context.Context, lease.AcquireRequest) (lease.Lease, error) {
	return lease.Lease{}, f.err
}
func (f failing) Renew(context.Context, lease.RenewRequest) (lease.Lease, error) {
	return lease.Lease{}, f.err
}
func (f failing) Release(context.Context, lease.ReleaseRequest) (lease.State, error) {
	return lease.State{}, f.err
}
func (f failing) Break(context.Context, lease.BreakRequest) (lease.Broken, error) {
	return lease.Broken{}, f.err
}
func (f failing) Get(context.Context, lease.Name) (lease.State, error) { return lease.State{}, f.err }

// A clientCall is one method of a client, with the lease l where it takes one,
// and with some of its texts replaced.
type clientCall struct {
	name  string
	texts []string
	do    func(ctx context.Context, c lease.Service, l lease.Lease, texts map[string]string) (any, error)
}

var clientCalls = []clientCall{
	{"acquire", []string{"namespace", "lock", "holder", "request_id", "metadata"}, func(ctx context.Context, c lease.Service, _ lease.Lease, x map[string]string) (any, error) {
		return c.Acquire(ctx, lease.AcquireRequest{Name: named(x), TTL: time.Minute, Holder: x["holder"], RequestID: x["request_id"], Metadata: x["metadata"]})
	}},
	{"renew", []string{"namespace", "lock", "lease_id"}, func(ctx context.Context, c lease.Service, l lease.Lease, x map[string]string) (any, error) {
		return c.Renew(ctx, lease.RenewRequest{Name: named(x), LeaseID: or(x["lease_id"], l.ID), Token: l.Token, TTL: 2 * time.Minute})
	}},
	{"release", []string{"namespace", "lock", "lease_id"}, func(ctx context.Context, c lease.Service, l lease.Lease, x map[string]string) (any, error) {
		return c.Release(ctx, lease.ReleaseRequest{Name: named(x), LeaseID: or(x["lease_id"], l.ID), Token: l.Token})
	}},
	{"break", []string{"namespace", "lock", "reason"}, func(ctx context.Context, c lease.Service, l lease.Lease, x map[string]string) (any, error) {
		return c.Break(ctx, lease.BreakRequest{Name: named(x), Token: l.Token, Reason: or(x["reason"], "it is gone")})
	}},
	{"get", []string{"namespace", "lock"}, func(ctx context.Context, c lease.Service, _ lease.Lease, x map[string]string) (any, error) {
		return c.Get(ctx, named(x))
	}},
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func named(x map[string]string) lease.Name {
	return lease.Name{Namespace: or(x["namespace"], "payments"), Lock: or(x["lock"], "orders/42")}
}

func everyClientCall(t *testing.T, check func(*testing.T, clientCall)) {
	for _, call := range clientCalls {
		t.Run(call.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, call) })
		})
	}
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *lease.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field || invalid.Reason == "" {
		t.Errorf("got %v, want an InvalidError for %s", err, field)
	}
}

// sentinels are all that an error of a service can match.
var sentinels = []error{
	lease.ErrHeld, lease.ErrLost, lease.ErrExpired, lease.ErrRequestSpent, lease.ErrRequestConflict, lease.ErrTokenChanged, lease.ErrInvalid, lease.ErrForbidden,
	lease.ErrThrottled, lease.ErrTooManyWithdrawn, lease.ErrUnavailable, lease.ErrClockSkew, lease.ErrQuarantine, lease.ErrMisconfigured, lease.ErrOutcomeUnknown,
}

// matching checks that an error matches what another does, and nothing else.
func matching(t *testing.T, got, want error) {
	t.Helper()
	for _, s := range sentinels {
		if errors.Is(got, s) != errors.Is(want, s) {
			t.Errorf("got %q; that it is %q should be %t", got, s, errors.Is(want, s))
		}
	}
}

// retry makes an error that waiting cures.
func retry(err error, after time.Duration) error { return &lease.RetryError{Err: err, After: after} }

var errorsAndProblems = []struct {
	err        error
	status     int
	code       string
	retryAfter string // the header
	retryMS    string // the member
}{
	{&lease.HeldError{Holder: "worker-2", Token: 7, Remaining: 12 * time.Second}, 409, "held", "1", "1000"},
	{&lease.HeldError{Holder: "", Token: fence.Max, Remaining: time.Millisecond}, 409, "held", "1", "1"},
	{&lease.HeldError{Holder: "é \"\\\u2028<", Token: 1}, 409, "held", "1", "0"},
	{lease.ErrRequestSpent, 409, "request_spent", "", ""},
	{lease.ErrRequestConflict, 409, "request_conflict", "", ""},
	{&lease.TokenChangedError{Token: 8}, 409, "token_changed", "", ""},
	{&lease.TokenChangedError{Token: fence.Max}, 409, "token_changed", "", ""},
	{lease.ErrExpired, 410, "lease_expired", "", ""},
	{lease.ErrLost, 410, "lease_lost", "", ""},
	{&lease.InvalidError{Field: "ttl_ms", Reason: "is 5, want 1000 to 2000"}, 400, "invalid", "", ""},
	{&lease.InvalidError{Field: "lock", Reason: "lock: lock: "}, 400, "invalid", "", ""},
	{&lease.InvalidError{Field: "lock"}, 400, "invalid", "", ""},
	{&lease.InvalidError{Reason: "it makes no sense"}, 400, "invalid", "", ""},
	{lease.ErrForbidden, 403, "forbidden", "", ""},
	{lease.ErrThrottled, 429, "throttled", "", ""},
	{retry(lease.ErrThrottled, 0), 429, "throttled", "1", "0"},
	{retry(lease.ErrThrottled, time.Second), 429, "throttled", "1", "1000"},
	{retry(lease.ErrThrottled, 1001*time.Millisecond), 429, "throttled", "2", "1001"},
	{retry(lease.ErrTooManyWithdrawn, 40*time.Second), 429, "too_many_withdrawn", "40", "40000"},
	{lease.ErrMisconfigured, 500, "misconfigured", "", ""},
	{lease.ErrUnavailable, 503, "unavailable", "", ""},
	{retry(lease.ErrUnavailable, 100*time.Millisecond), 503, "unavailable", "1", "100"},
	{retry(lease.ErrClockSkew, time.Second), 503, "clock_skew", "1", "1000"},
	{retry(lease.ErrQuarantine, 90*time.Minute), 503, "quarantine", "5400", "5400000"},
	{lease.ErrQuarantine, 503, "quarantine", "", ""},
	{lease.ErrOutcomeUnknown, 503, "outcome_unknown", "", ""},
	{retry(lease.ErrOutcomeUnknown, 1999*time.Millisecond), 503, "outcome_unknown", "2", "1999"},
}

func TestAnErrorSurvivesTheWay(t *testing.T) {
	walked := map[string]bool{"not_found": true, "method_not_allowed": true, "too_large": true} // of HTTP, and no service's
	for _, p := range errorsAndProblems {
		walked[p.code] = true
		for how, err := range map[string]error{
			"as it is":       p.err,
			"wrapped":        fmt.Errorf("secret: %w", p.err),
			"with the cause": fmt.Errorf("%w: %w", p.err, errors.New("secret of the store")),
			"deep":           fmt.Errorf("a secret: %w", fmt.Errorf("b: %w", errors.Join(errors.New("secret"), p.err))),
		} {
			t.Run(fmt.Sprintf("%s %s %s", p.code, p.retryMS, how), func(t *testing.T) {
				w := serving(t, failing{err})
				if how != "as it is" {
					w.unchecked()
				}
				i := 0 // acquire
				if p.status == 410 {
					i = 1 // renew
				}
				q := requests(some)[i]
				a := w.send("POST", q.path(), q.body("", ""))
				_, ms, _ := strings.Cut(a.body, `"retry_after_ms":`)
				if ms = strings.TrimRight(ms, "}\n"); a.status != p.status || a.Code != p.code || a.header.Get("Retry-After") != p.retryAfter || ms != p.retryMS {
					t.Errorf("got %d %s, Retry-After %q, want %d %s, %q and %q ms", a.status, a.body, a.header.Get("Retry-After"), p.status, p.code, p.retryAfter, p.retryMS)
				}
				if strings.Contains(a.body, "secret") {
					t.Errorf("the cause crossed the border: %s", a.body)
				}
				_, got := clientCalls[i].do(t.Context(), w.c, some, nil)
				matching(t, got, p.err)
				sameDetail[*lease.HeldError](t, got, p.err)
				sameDetail[*lease.TokenChangedError](t, got, p.err)
				sameDetail[*lease.InvalidError](t, got, p.err)
				var r, want *lease.RetryError
				if errors.As(got, &r) != errors.As(p.err, &want) || r != nil && r.After != want.After {
					t.Errorf("got %#v, want the retry of %#v", got, p.err)
				}
			})
		}
	}
	if want := httplease.Codes(); !slices.Equal(slices.Sorted(maps.Keys(walked)), slices.Sorted(slices.Values(want))) {
		t.Errorf("walked %v, the table has %v", walked, want)
	}
}

// sameDetail checks that the detail of type E is there in both errors or in
// none, and says the same.
func sameDetail[E error](t *testing.T, got, want error) {
	t.Helper()
	var g, w E
	if errors.As(got, &g) != errors.As(want, &w) || fmt.Sprintf("%+v", detail(g)) != fmt.Sprintf("%+v", detail(w)) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

// detail drops the pointer and the Error method, which would be printed.
func detail(err error) any {
	switch e := err.(type) {
	case *lease.HeldError:
		if e != nil {
			return struct{ lease.HeldError }{*e}.HeldError
		}
	case *lease.TokenChangedError:
		if e != nil {
			return *e
		}
	case *lease.InvalidError:
		if e != nil {
			return *e
		}
	}
	return nil
}

func TestWhatMatchesNothingMayHaveBeenDone(t *testing.T) {
	for _, err := range []error{
		errors.New("secret"), context.Canceled, context.DeadlineExceeded, fmt.Errorf("secret: %w", context.Canceled),
		errors.Join(errors.New("secret"), errors.New("secret")), retry(errors.New("secret"), time.Second), strconv.ErrSyntax,
	} {
		everyClientCall(t, func(t *testing.T, call clientCall) {
			w := serving(t, failing{err})
			_, got := call.do(t.Context(), w.c, some, nil)
			want := lease.ErrOutcomeUnknown
			if call.name == "get" {
				want = lease.ErrUnavailable // a read has no outcome
			}
			matching(t, got, want)
			a := w.send("POST", "/v1/payments/acquire", `{"lock":"a","ttl_ms":1000}`)
			if a.status != 503 || a.Code != "outcome_unknown" || strings.Contains(a.body, "secret") || strings.Contains(a.body, err.Error()) {
				t.Errorf("%v: got %d %s", err, a.status, a.body)
			}
		})
	}
}
