package httplease

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync"
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

	// Base sends the signed requests. Nil means a transport as [Client.HTTP] has
	// it. Another one should ping HTTP/2 connections; see [http.HTTP2Config].
	Base http.RoundTripper

	mu      sync.Mutex
	pending *retrieval
}

// Credentials are where keys come from. Every [aws.CredentialsProvider] is one;
// put it into an [aws.CredentialsCache] unless it is cheap.
type Credentials interface {
	Retrieve(context.Context) (aws.Credentials, error)
}

// RoundTrip implements [http.RoundTripper]. It takes no longer than the context
// of the request allows, whatever the credentials do.
func (s *SigV4) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.Base == nil {
		return s.send(transport, r)
	}
	return s.send(s.Base, r)
}

func (s *SigV4) send(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	key, err := s.key(r.Context())
	if err != nil {
		return nil, err
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
	return base.RoundTrip(signed)
}

// A retrieval is one question for the key, and whoever needs one waits for it.
type retrieval struct {
	done chan struct{}
	key  aws.Credentials
	err  error
}

// key returns the key to sign with. There is one retrieval at a time, so that
// credentials that hang, and do not listen, hold one goroutine and no request.
func (s *SigV4) key(ctx context.Context) (aws.Credentials, error) {
	if s.Credentials == nil {
		return aws.Credentials{}, fmt.Errorf("%w: SigV4.Credentials is nil", lease.ErrMisconfigured)
	}
	s.mu.Lock()
	p := s.pending
	if p == nil {
		p = &retrieval{done: make(chan struct{})}
		s.pending = p
		go s.retrieve(context.WithoutCancel(ctx), p)
	}
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.key, p.err
	case <-ctx.Done():
		return aws.Credentials{}, fmt.Errorf("%w: credentials: %w", lease.ErrUnavailable, context.Cause(ctx))
	}
}

func (s *SigV4) retrieve(ctx context.Context, p *retrieval) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	defer func() {
		if bug := recover(); bug != nil {
			p.err = fmt.Errorf("%w: credentials: panic: %v", lease.ErrMisconfigured, bug)
		}
		s.mu.Lock()
		s.pending = nil
		s.mu.Unlock()
		close(p.done)
	}()
	if p.key, p.err = s.Credentials.Retrieve(ctx); p.err != nil {
		p.err = fmt.Errorf("%w: credentials: %w", lease.ErrUnavailable, p.err)
	}
}
