package lock_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease/sigv4"
	"github.com/pawl-lock/pawl/pkg/lock"
)

func work(context.Context, fence.Token) error { return nil }

// Over HTTPS, with the credentials that the AWS SDK finds: of a role, a profile
// or the environment. What they may do is said by IAM.
func ExampleClient_sigV4() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	locks := &lock.Client{
		Service: &httplease.Client{
			URL: os.Getenv("PAWL_URL"),
			HTTP: &http.Client{Transport: &sigv4.Transport{
				Credentials: cfg.Credentials,
				Region:      cfg.Region,
			}},
		},
		Observe: lock.LogEvents(slog.Default()),
	}
	if err := locks.Do(ctx, "payments/orders/42", work); err != nil {
		log.Fatal(err)
	}
}

// A bearer adds a token to each request. It must leave the request as it is, so
// it changes a copy.
type bearer struct{ token func() string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token())
	return httplease.DefaultTransport.RoundTrip(r)
}

// Over HTTPS, with a bearer token, from a cloud other than AWS for instance.
func ExampleClient_bearer() {
	token := func() string { return os.Getenv("PAWL_TOKEN") } // one that expires is fetched anew here
	locks := &lock.Client{Service: &httplease.Client{
		URL:  os.Getenv("PAWL_URL"),
		HTTP: &http.Client{Transport: bearer{token}},
	}}
	if err := locks.Do(context.Background(), "payments/orders/42", work); err != nil {
		log.Fatal(err)
	}
}

// Straight to DynamoDB, without a service in between. Whoever may write to the
// table can hold every lock in it. For an engine on this machine set
// AWS_ENDPOINT_URL_DYNAMODB.
func ExampleClient_direct() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	locks := &lock.Client{Service: &dynamolease.Store{
		Client: dynamolease.NewClient(cfg),
		Table:  "locks",
		// Rules must be the same on every host, and as the service's if that uses
		// the table too.
	}}
	if err := locks.Do(ctx, "payments/orders/42", work); err != nil {
		log.Fatal(err)
	}
	fmt.Println("done")
}
