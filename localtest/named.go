package localtest

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// A named server is one that the user runs, and named in a variable.
type named struct {
	region      string
	credentials aws.Credentials
}

// nameServer takes what is needed to reach an endpoint from the user's
// environment: it may be asked for. Of an endpoint of AWS, host finds the Region.
func nameServer(endpoint string, host *regexp.Regexp) (named, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return named{}, errors.New("not a URL such as http://127.0.0.1:8000")
	}
	n := named{
		region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		credentials: aws.Credentials{
			AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
		},
	}
	if m := host.FindStringSubmatch(u.Hostname()); m != nil {
		n.region = m[1]
	}
	return n, nil
}
