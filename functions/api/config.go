package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// newStore reads the configuration from the environment:
//
//	TABLE                          name of the table; required
//	MAX_TTL_MS                     longest TTL
//	MAX_LOCK_DELAY_MS              longest lock delay
//	SKEW_MS                        how far two hosts' clocks may be apart
//	RESTORED_AT_MS                 when the table was restored from a backup
//	AWS_ENDPOINT_URL_DYNAMODB      another endpoint than the Region's
//	AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//	                               as Lambda sets them
//
// It does not use the SDK's own configuration loader: that takes 5 ms of every
// cold start and a third of the binary, and Lambda sets nothing else.
func newStore(getenv func(string) string) (*dynamolease.Store, error) {
	var errs []error
	required := func(name string) string {
		v := getenv(name)
		if v == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
		return v
	}
	duration := func(name string) time.Duration {
		v := getenv(name)
		if v == "" {
			return 0
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n <= 0 || n > 1<<48 {
			errs = append(errs, fmt.Errorf("%s is %q, want milliseconds, above 0", name, v))
			return 0
		}
		return time.Duration(n) * time.Millisecond
	}
	rules := lease.Rules{
		MaxTTL:       duration("MAX_TTL_MS"),
		MaxLockDelay: duration("MAX_LOCK_DELAY_MS"),
		Skew:         duration("SKEW_MS"),
	}
	if at := duration("RESTORED_AT_MS"); at != 0 {
		rules.RestoredAt = time.UnixMilli(at.Milliseconds())
	}
	if err := rules.Validate(time.Now()); err != nil {
		errs = append(errs, err)
	}
	options := dynamodb.Options{
		Region: required("AWS_REGION"),
		Credentials: credentials(aws.Credentials{
			AccessKeyID:     required("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: required("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    getenv("AWS_SESSION_TOKEN"),
		}),
	}
	if endpoint := getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
		options.BaseEndpoint = &endpoint
	}
	store := &dynamolease.Store{Client: dynamolease.NewClient(options), Table: required("TABLE"), Rules: rules}
	return store, errors.Join(errs...)
}

// credentials never change: Lambda starts a new process for new ones.
func credentials(c aws.Credentials) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil })
}
