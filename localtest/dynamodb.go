package localtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A DynamoDB is a running engine that does what the lease protocol needs.
type DynamoDB struct {
	// Endpoint is the URL it answers at.
	Endpoint string

	// Name says what it is, such as "dynoxide 1.5.0 (in memory)".
	Name string

	region      string
	credentials aws.Credentials
	stop        func() error // nil when somebody else runs it
}

// StartDynamoDB returns the first of these that there is:
//
//  1. the DynamoDB at the URL in DYNAMODB_ENDPOINT, which may be a Region of AWS
//  2. DynamoDB Local, unpacked in the directory DYNAMODB_LOCAL_HOME, run with Java
//  3. the image amazon/dynamodb-local, if a Docker daemon answers
//  4. dynoxide, from PATH or .tools, where [Install] builds it with cargo
//
// The first one that is there is the one: if it does not work, that is an error,
// and the next is not tried. An engine that is started here keeps its data in
// dataDir, or in memory if that is empty, and runs until [DynamoDB.Close] or the
// end of this process; ctx is for starting it. The data of one engine is of no
// use to another.
func StartDynamoDB(ctx context.Context, dataDir string) (*DynamoDB, error) {
	d, err := startDynamoDB(ctx, dataDir)
	if err != nil {
		return nil, fmt.Errorf("localtest: %w", err)
	}
	return d, nil
}

func startDynamoDB(ctx context.Context, dataDir string) (*DynamoDB, error) {
	if endpoint := os.Getenv("DYNAMODB_ENDPOINT"); endpoint != "" {
		d, err := namedDynamoDB(endpoint)
		if err == nil {
			err = probe(ctx, dynamodb.New(d.Options()))
		}
		if err != nil {
			return nil, fmt.Errorf("DYNAMODB_ENDPOINT=%s: %w", endpoint, err)
		}
		return d, nil
	}
	if dataDir != "" {
		var err error
		if dataDir, err = filepath.Abs(dataDir); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dataDir, 0o755); err != nil {
			return nil, err
		}
	}
	e, err := findEngine(ctx, dataDir)
	if err != nil {
		return nil, err
	}
	return e.start(ctx, freePort)
}

// awsHost finds the Region in the host name of an endpoint of AWS.
var awsHost = regexp.MustCompile(
	`(?:^|\.)(?:dynamodb|ddb)(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?(?:amazonaws\.com|api\.aws)`)

// namedDynamoDB is the one that the user named.
func namedDynamoDB(endpoint string) (*DynamoDB, error) {
	n, err := nameServer(endpoint, awsHost)
	if err != nil {
		return nil, err
	}
	return &DynamoDB{
		Endpoint: endpoint, Name: "DynamoDB from DYNAMODB_ENDPOINT", region: n.region, credentials: n.credentials,
	}, nil
}

// Options returns what [dynamodb.New] needs to reach this engine.
func (d *DynamoDB) Options() dynamodb.Options {
	// Engines on this machine check neither, but the SDK signs with both.
	credentials := d.credentials
	if !credentials.HasKeys() {
		credentials = aws.Credentials{AccessKeyID: "pawl", SecretAccessKey: "pawl"}
	}
	return dynamodb.Options{
		BaseEndpoint: aws.String(d.Endpoint),
		Region:       cmp.Or(d.region, "us-east-1"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		}),
	}
}

// Close ends what StartDynamoDB started. It is an error if that had ended by
// itself.
func (d *DynamoDB) Close() error {
	if d.stop == nil {
		return nil
	}
	if err := d.stop(); err != nil {
		return fmt.Errorf("localtest: %w", err)
	}
	return nil
}
