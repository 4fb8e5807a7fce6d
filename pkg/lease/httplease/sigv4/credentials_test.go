package sigv4_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease/sigv4"
)

type credentials func(context.Context) (aws.Credentials, error)

func (f credentials) Retrieve(ctx context.Context) (aws.Credentials, error) { return f(ctx) }

// unsent is a base that gets no request.
type unsent struct{}

func (unsent) RoundTrip(*http.Request) (*http.Response, error) { panic("it was sent") }

var renewal = lease.RenewRequest{
	Name: lease.Name{Namespace: "payments", Lock: "orders/42"}, LeaseID: "6Pz1qXw2Qm6ZV8sJc0aB3g", Token: 7, TTL: time.Minute,
}

func signedBy(c sigv4.Credentials) *httplease.Client {
	return &httplease.Client{URL: "http://pawl.test", HTTP: &http.Client{Transport: &sigv4.Transport{Credentials: c, Region: "eu-west-1", Base: unsent{}}}}
}

// Credentials that do not listen either are asked once, and hold up no request
// for longer than it may take.
func TestCredentialsThatHangHoldUpNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := signedBy(credentials(func(context.Context) (aws.Credentials, error) {
			asked.Add(1)
			time.Sleep(time.Hour)
			return aws.Credentials{}, errors.New("too late")
		}))
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			started := time.Now()
			_, err := c.Renew(ctx, renewal)
			cancel()
			if took := time.Since(started); !errors.Is(err, lease.ErrUnavailable) || took != 3*time.Second {
				t.Errorf("got %v after %v, want ErrUnavailable after 3 s", err, took)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		time.Sleep(time.Hour)
	})
}

func TestCredentialsThatFailOrAreMissingSignNothing(t *testing.T) {
	for name, c := range map[string]struct {
		credentials sigv4.Credentials
		want        error
	}{
		"none":  {nil, lease.ErrMisconfigured},
		"fail":  {credentials(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("no role") }), lease.ErrUnavailable},
		"panic": {credentials(func(context.Context) (aws.Credentials, error) { panic("a bug") }), lease.ErrMisconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := signedBy(c.credentials).Renew(t.Context(), renewal); !errors.Is(err, c.want) || errors.Is(err, lease.ErrOutcomeUnknown) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// So that waits have connections of their own; see [httplease.Client.HTTP].
func TestASignerOverAnotherBaseSignsToo(t *testing.T) {
	key := credentials(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
	})
	var sent, base http.RoundTripper = nil, unsent{}
	var authorization string
	signer := &sigv4.Transport{Credentials: key, Region: "eu-west-1", Base: base}
	other := signer.Over(func(b http.RoundTripper) http.RoundTripper {
		sent = b
		return seen(func(r *http.Request) { authorization = r.Header.Get("Authorization") })
	})
	if sent != base {
		t.Errorf("the base was %v", sent)
	}
	r, _ := http.NewRequest(http.MethodPost, "http://pawl.test/v1/payments/acquire", strings.NewReader("{}"))
	if _, err := other.RoundTrip(r); err == nil || !strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") {
		t.Errorf("got error %v, and it was signed as %q", err, authorization)
	}
}

// seen is a base that looks at a request, and fails.
type seen func(*http.Request)

func (f seen) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, errors.New("not sent")
}
