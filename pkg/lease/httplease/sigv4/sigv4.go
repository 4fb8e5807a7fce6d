// Package sigv4 signs requests to the service with AWS credentials, for an HTTP API
// with the IAM authorizer. It is apart from package httplease so that whoever sends
// a bearer token links nothing of AWS.
//
// It takes no longer than the context of a request allows, whatever the credentials
// do. It cannot tell whether the role may do what is asked: that is said by IAM.
package sigv4

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
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// A Transport is an [http.RoundTripper] that signs requests: AWS Signature Version
// 4 for the service "execute-api".
//
//	&httplease.Client{URL: url, HTTP: &http.Client{Transport: &sigv4.Transport{Credentials: cfg.Credentials, Region: cfg.Region}}}
type Transport struct {
	// Credentials sign; those of [aws.Config] for instance. Required.
	Credentials Credentials

	// Region is that of the API. Required.
	Region string

	// Base sends the signed requests. Nil means [httplease.DefaultTransport].
	// Another one should ping HTTP/2 connections; see [http.HTTP2Config].
	Base http.RoundTripper

	mu      sync.Mutex
	pending *retrieval
}

// Credentials are where keys come from. Every [aws.CredentialsProvider] is one;
// put it into an [aws.CredentialsCache] unless it is cheap.
type Credentials interface {
	Retrieve(context.Context) (aws.Credentials, error)
}

// RoundTrip implements [http.RoundTripper].
func (s *Transport) RoundTrip(r *http.Request) (*http.Response, error) { return s.send(s.base(), r) }

func (s *Transport) base() http.RoundTripper {
	if s.Base == nil {
		return httplease.DefaultTransport
	}
	return s.Base
}

// Over implements [httplease.Layer].
func (s *Transport) Over(change func(base http.RoundTripper) http.RoundTripper) http.RoundTripper {
	return over{s, change(s.base())}
}

// over is a [Transport] with another base.
type over struct {
	*Transport
	base http.RoundTripper
}

func (o over) RoundTrip(r *http.Request) (*http.Response, error) { return o.send(o.base, r) }

func (s *Transport) send(base http.RoundTripper, r *http.Request) (*http.Response, error) {
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
func (s *Transport) key(ctx context.Context) (aws.Credentials, error) {
	if s.Credentials == nil {
		return aws.Credentials{}, fmt.Errorf("%w: sigv4.Transport.Credentials is nil", lease.ErrMisconfigured)
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

func (s *Transport) retrieve(ctx context.Context, p *retrieval) {
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
