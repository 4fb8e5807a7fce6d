package localtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// An S3 is a server that speaks the protocol of S3, and answers.
type S3 struct {
	// Endpoint is the URL it answers at.
	Endpoint string

	// Name says what it is, such as "versitygw v1.8.0".
	Name string

	region      string
	credentials aws.Credentials
	stop        func() error // nil when somebody else runs it
}

// errNoS3 tells what to provide; a server that is there and fails is not this
// error.
var errNoS3 = errors.New("no S3: set S3_ENDPOINT to the URL of one, " +
	"or have go run ./localtest/stores build versitygw")

func findS3(ctx context.Context) error {
	if os.Getenv("S3_ENDPOINT") != "" {
		return nil
	}
	return versitygw.find(ctx)
}

// StartS3 returns the S3 at the URL in S3_ENDPOINT, which may be a Region of
// AWS, with the credentials in the environment. Without one it starts versitygw
// from .tools, where [Install] builds it, on a folder of its own: that is gone when
// the server ends, by [S3.Close] or with this process. ctx is for starting it.
func StartS3(ctx context.Context) (*S3, error) {
	s, err := startS3(ctx)
	if err != nil {
		return nil, fmt.Errorf("localtest: %w", err)
	}
	return s, nil
}

func startS3(ctx context.Context) (*S3, error) {
	if endpoint := os.Getenv("S3_ENDPOINT"); endpoint != "" {
		s, err := namedS3(endpoint)
		if err == nil {
			err = s.answers(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("S3_ENDPOINT=%s: %w", endpoint, err)
		}
		return s, nil
	}
	path, err := versitygw.path("versitygw")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoS3, err)
	}
	return startVersitygw(ctx, path, freePort)
}

// s3Host finds the Region in the host name of an endpoint of AWS.
var s3Host = regexp.MustCompile(`(?:^|\.)s3(?:-fips)?(?:\.dualstack)?\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com`)

// namedS3 is the one that the user named.
func namedS3(endpoint string) (*S3, error) {
	n, err := nameServer(endpoint, s3Host)
	if err != nil {
		return nil, err
	}
	if !n.credentials.HasKeys() {
		return nil, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
	}
	return &S3{Endpoint: endpoint, Name: "S3 from S3_ENDPOINT", region: n.region, credentials: n.credentials}, nil
}

// Options returns what [s3.New] needs to reach this server.
func (s *S3) Options() s3.Options {
	return s3.Options{
		BaseEndpoint: aws.String(s.Endpoint),
		Region:       s.region,
		UsePathStyle: true, // the name of a bucket before 127.0.0.1 is no host
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return s.credentials, nil
		}),
	}
}

// answers fails unless the server knows the credentials.
func (s *S3) answers(ctx context.Context) error {
	o := s.Options()
	o.RetryMaxAttempts = 1
	_, err := s3.New(o).ListBuckets(ctx, &s3.ListBucketsInput{})
	return err
}

// Close ends what StartS3 started. It is an error if that had ended by itself.
func (s *S3) Close() error {
	if s.stop == nil {
		return nil
	}
	if err := s.stop(); err != nil {
		return fmt.Errorf("localtest: %w", err)
	}
	return nil
}
