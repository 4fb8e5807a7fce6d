package httplease_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

type credentials func(context.Context) (aws.Credentials, error)

func (f credentials) Retrieve(ctx context.Context) (aws.Credentials, error) { return f(ctx) }

var fixed = credentials(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
})

func signedBy(c httplease.Credentials) *httplease.Client {
	sent := transport(func(*http.Request) (*http.Response, error) { panic("it was sent") })
	return &httplease.Client{URL: "http://pawl.test", HTTP: &http.Client{Transport: &httplease.SigV4{Credentials: c, Region: "eu-west-1", Base: sent}}}
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
			_, err := c.Renew(ctx, lease.RenewRequest{Name: orders, LeaseID: some.ID, Token: 7, TTL: time.Minute})
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
		credentials httplease.Credentials
		want        error
	}{
		"none":  {nil, lease.ErrMisconfigured},
		"fail":  {credentials(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("no role") }), lease.ErrUnavailable},
		"panic": {credentials(func(context.Context) (aws.Credentials, error) { panic("a bug") }), lease.ErrMisconfigured},
	} {
		t.Run(name, func(t *testing.T) { outcomes(t, signedBy(c.credentials), c.want, c.want) })
	}
}
