package httplease

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// SigV4 is an [http.RoundTripper] that signs requests for an HTTP API with the
// IAM authorizer: AWS Signature Version 4 for the service "execute-api".
//
//	&httplease.Client{URL: url, HTTP: &http.Client{Transport: &httplease.SigV4{Credentials: cfg.Credentials, Region: cfg.Region}}}
type SigV4 struct {
	// Credentials sign; those of [aws.Config] for instance. Required.
	Credentials Credentials

	// Region is that of the API. Required.
	Region string

	// Base sends the signed requests. Nil means [http.DefaultTransport].
	Base http.RoundTripper
}

// Credentials are where keys come from. Every [aws.CredentialsProvider] is one;
// put it into an [aws.CredentialsCache] unless it is cheap.
type Credentials interface {
	Retrieve(context.Context) (aws.Credentials, error)
}

// RoundTrip implements [http.RoundTripper].
func (s *SigV4) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	key, err := s.Credentials.Retrieve(r.Context())
	if err != nil {
		return nil, fmt.Errorf("%w: credentials: %w", lease.ErrUnavailable, err)
	}
	// A RoundTripper must leave the caller's request as it is.
	signed := r.Clone(r.Context())
	signed.Body = io.NopCloser(bytes.NewReader(body))
	sum := sha256.Sum256(body)
	// A new signer each time: one that is kept finds the key it derived by the key
	// id alone, whatever the secret is now.
	err = v4.NewSigner().SignHTTP(r.Context(), key, signed, hex.EncodeToString(sum[:]), "execute-api", s.Region, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%w: sign: %w", lease.ErrMisconfigured, err)
	}
	base := s.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(signed)
}
