package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/pkg/apigw"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// newStore returns the store of a deployment. Beside the settings it reads what
// Lambda sets, AWS_REGION and the credentials, and AWS_ENDPOINT_URL_DYNAMODB for
// another endpoint than the Region's.
//
// It does not use the SDK's own configuration loader: that takes 5 ms of every
// cold start and a third of the binary, and Lambda sets nothing else.
func newStore(s settings.API, getenv func(string) string) (*dynamolease.Store, error) {
	var errs []error
	required := func(name string) string {
		v := getenv(name)
		if v == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
		return v
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
	return &dynamolease.Store{Client: dynamolease.NewClientFrom(options), Table: s.Table, Rules: s.Rules}, errors.Join(errs...)
}

// credentials never change: Lambda starts a new process for new ones.
func credentials(c aws.Credentials) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil })
}

// caller returns who makes a request, as the kind of authorizer that this
// deployment has found out. Nobody but the settings says which kind that is.
func caller(s settings.API) func(*http.Request) httplease.Caller {
	return func(r *http.Request) httplease.Caller {
		event, _ := apigw.FromContext(r.Context())
		c := httplease.Caller{Received: event.Time}
		switch s.Auth {
		case settings.IAM:
			c.Principal = event.Authorizer.IAM()
			c.Unrestricted = c.Principal != ""
			c.Name = c.Principal[strings.LastIndexAny(c.Principal, ":/")+1:] // no name of a user or role has either
		case settings.JWT:
			c.Principal, c.Scopes = event.Authorizer.JWT(s.ScopeClaim)
			_, c.Name, _ = strings.Cut(c.Principal, "#") // no issuer has one
		}
		return c
	}
}
