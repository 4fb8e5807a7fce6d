package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pawl-lock/pawl/localtest/gateway"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease/sigv4"
)

type key aws.Credentials

func (k key) Retrieve(context.Context) (aws.Credentials, error) { return aws.Credentials(k), nil }

// walk takes a lock, renews it and gives it up again.
func walk(ctx context.Context, s lease.Service, n lease.Name) error {
	l, err := s.Acquire(ctx, lease.AcquireRequest{Name: n, TTL: time.Minute, Holder: "a & b"})
	if err != nil {
		return err
	}
	if _, err := s.Get(ctx, n); err != nil {
		return err
	}
	if _, err = s.Renew(ctx, lease.RenewRequest{Name: n, LeaseID: l.ID, Token: l.Token, TTL: time.Minute}); err != nil {
		return err
	}
	_, err = s.Release(ctx, lease.ReleaseRequest{Name: n, LeaseID: l.ID, Token: l.Token})
	return err
}

func TestWithIAMOnlySignedRequestsAreServed(t *testing.T) {
	good := key{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}
	url, log := serve(t, "AUTH", "iam", "AWS_ACCESS_KEY_ID", good.AccessKeyID, "AWS_SECRET_ACCESS_KEY", good.SecretAccessKey)
	n := lease.Name{Namespace: "payments", Lock: "s3://b/k?v=1#f é"}
	signed := func(k key, region string) http.RoundTripper { return &sigv4.Transport{Credentials: k, Region: region} }
	if err := walk(t.Context(), client(url, signed(good, "us-east-1")), n); err != nil {
		t.Fatal(err)
	}
	if want := `"principal":"arn:aws:iam::123456789012:user/local"`; strings.Count(log.String(), want) != 4 {
		t.Errorf("the log has not 4 calls of %s:\n%s", want, log)
	}
	for name, transport := range map[string]http.RoundTripper{
		"unsigned":         http.DefaultTransport,
		"another secret":   signed(key{AccessKeyID: good.AccessKeyID, SecretAccessKey: "guess"}, "us-east-1"),
		"another key":      signed(key{AccessKeyID: "AKIDOTHER", SecretAccessKey: "secret"}, "us-east-1"),
		"another region":   signed(good, "eu-west-1"),
		"signed too early": &sigv4.Transport{Credentials: good, Region: "us-east-1", Base: late{6 * time.Minute}},
		"another body":     &sigv4.Transport{Credentials: good, Region: "us-east-1", Base: tampered{}},
	} {
		c := client(url, transport)
		if _, err := c.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute}); !errors.Is(err, lease.ErrForbidden) {
			t.Errorf("%s: got %v, want ErrForbidden", name, err)
		}
	}
	for _, why := range []string{"does not match; canonical request", `unknown key \"AKIDOTHER\"`, "0 Authorization headers", "6m"} {
		if !strings.Contains(log.String(), why) {
			t.Errorf("the log does not say that the signature was refused for %s:\n%s", why, log)
		}
	}
	for _, path := range []string{"/healthz", "/v1/openapi.json"} {
		if a, err := http.Get(url + path); err != nil || a.StatusCode != http.StatusOK {
			t.Errorf("%s: got %v, %v, want it to be public", path, a, err)
		}
	}
	if a, err := http.Head(url + "/healthz"); err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("HEAD: got %v, %v, want it to be public", a, err)
	}
}

// late makes a signature as old as it says.
type late struct{ age time.Duration }

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	const form = "20060102T150405Z"
	signed, err := time.Parse(form, r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Date", signed.Add(-l.age).Format(form))
	return http.DefaultTransport.RoundTrip(r)
}

// tampered asks for more than was signed.
type tampered struct{}

func (tampered) RoundTrip(r *http.Request) (*http.Response, error) {
	const body = `{"lock":"another","ttl_ms":60000}`
	r.Body, r.ContentLength = http.NoBody, 0
	changed, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	changed.Header = r.Header
	return http.DefaultTransport.RoundTrip(changed)
}

func TestWithJWTAScopeIsNeededForEachAction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	url, log := serve(t, "AUTH", "jwt", "JWT_KEY", file, "THROTTLE", "off")
	token := func(scopes string) bearer {
		var text strings.Builder
		s := settings{getenv: func(name string) string { return map[string]string{"JWT_KEY": file, "USER": "alice"}[name] }}
		if err := s.printToken(&text, scopes); err != nil {
			t.Fatal(err)
		}
		return bearer(strings.TrimSpace(text.String()))
	}
	n := lease.Name{Namespace: "payments", Lock: "orders/42"}
	all := []string{"payments/acquire", "payments/read", "payments/renew", "payments/release"}
	if err := walk(t.Context(), client(url, token(strings.Join(all, " "))), n); err != nil {
		t.Fatal(err)
	}
	if want := `"principal":"https://pawl.localhost#alice"`; !strings.Contains(log.String(), want) {
		t.Errorf("the log has no call of %s:\n%s", want, log)
	}
	for i, missing := range all {
		some := slices.Delete(slices.Clone(all), i, i+1)
		n := lease.Name{Namespace: "payments", Lock: missing}
		if err := walk(t.Context(), client(url, token(strings.Join(some, " "))), n); !errors.Is(err, lease.ErrForbidden) {
			t.Errorf("without %s: got %v, want ErrForbidden", missing, err)
		}
	}
	c := client(url, token("payments/acquire"))
	if _, err := c.Acquire(t.Context(), lease.AcquireRequest{Name: lease.Name{Namespace: "billing", Lock: "a"}, TTL: time.Minute}); !errors.Is(err, lease.ErrForbidden) {
		t.Errorf("another namespace: got %v, want ErrForbidden", err)
	}
	forged := client(url, token("payments/acquire")+"x")
	if _, err := forged.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute}); !errors.Is(err, lease.ErrForbidden) {
		t.Errorf("a forged token: got %v, want ErrForbidden", err)
	}
}

// What AWS's authorizer lets through need not name anybody.
func TestWithJWTATokenThatNamesNobodyMayDoNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	url, log := serve(t, "AUTH", "jwt", "JWT_KEY", file, "THROTTLE", "off")
	key, err := (settings{getenv: func(string) string { return file }}).key()
	if err != nil {
		t.Fatal(err)
	}
	const scopes = "payments/acquire payments/break payments/release"
	for claims, want := range map[string]bool{
		`"sub":"a"`:                     true,
		`"client_id":"a"`:               true,
		`"sub":null,"azp":"a"`:          true,
		`"sub":"","appid":"a"`:          true,
		``:                              false,
		`"sub":null`:                    false,
		`"sub":""`:                      false,
		`"azp":"","client_id":null`:     false,
		`"sub":"a","scope":null`:        false,
		`"sub":"a","scope":""`:          false,
		`"sub":"a","scope":7`:           false,
		`"sub":"a","scope":{"a":1}`:     false,
		`"sub":"a","scope":"reports/*"`: false,
	} {
		t.Run(claims, func(t *testing.T) {
			all := map[string]any{"iss": issuer, "aud": audience, "exp": time.Now().Add(time.Hour).Unix(), "scope": scopes}
			if err := json.Unmarshal([]byte("{"+claims+"}"), &all); err != nil {
				t.Fatal(err)
			}
			token, err := gateway.SignJWT(key, all)
			if err != nil {
				t.Fatal(err)
			}
			c := client(url, bearer(token))
			n := lease.Name{Namespace: "payments", Lock: claims}
			_, err = c.Acquire(t.Context(), lease.AcquireRequest{Name: n, TTL: time.Minute})
			if want && err != nil || !want && !errors.Is(err, lease.ErrForbidden) {
				t.Errorf("{%s}: acquire: %v, want it granted: %v", claims, err, want)
			}
			_, err = c.Break(t.Context(), lease.BreakRequest{Name: n, Token: 1, Reason: "test"})
			if errors.Is(err, lease.ErrForbidden) == want {
				t.Errorf("{%s}: break: %v, want it forbidden: %v", claims, err, !want)
			}
		})
	}
	if strings.Contains(log.String(), `"principal":"","outcome":"granted`) {
		t.Errorf("nobody was granted a lock:\n%s", log)
	}
}

// A bearer is a token that is added to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestSettingsThatCannotBeMetAreNamed(t *testing.T) {
	for want, set := range map[string]map[string]string{
		"AWS_ACCESS_KEY_ID": {"AUTH": "iam"},
		"JWT_KEY":           {"AUTH": "jwt"},
		"want none, iam":    {"AUTH": "basic"},
	} {
		s := settings{getenv: func(name string) string { return set[name] }}
		if _, err := s.start(t.Context(), new(log)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error with %q", set, err, want)
		}
	}
	s := settings{memory: true, getenv: func(name string) string { return map[string]string{"AUTH": "iam"}[name] }}
	if _, err := s.start(t.Context(), new(log)); err == nil {
		t.Error("AUTH=iam was accepted with -memory")
	}
}
