package dynamolease_test

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// missing answers as DynamoDB does where there is no such table.
func missing(asked *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found"}`))
	})
}

// What the environment says must not be dropped in silence: a developer who
// believes to talk to an engine on this machine would take locks in the account.
func TestAClientGoesWhereTheConfigurationSays(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewTLSServer(missing(&asked))
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": srv.URL, "AWS_CA_BUNDLE": ca, "AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_MAX_ATTEMPTS": "2",
	} {
		t.Setenv(name, value)
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	cfg.APIOptions = append(cfg.APIOptions, func(*middleware.Stack) error { seen.Add(1); return nil })
	client := dynamolease.NewClient(cfg)
	_, err = (&dynamolease.Store{Client: client, Table: "locks"}).Get(t.Context(), anyLease.Name)
	want := `table "locks" in eu-west-1 (` + srv.URL + `)`
	if !errors.Is(err, lease.ErrMisconfigured) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if asked.Load() == 0 || seen.Load() == 0 {
		t.Errorf("asked %d times, middleware used %d times", asked.Load(), seen.Load())
	}
	if n := client.Options().Retryer.MaxAttempts(); n != 2 {
		t.Errorf("%d attempts, want the 2 of the environment", n)
	}
}

// A certificate that is not trusted, or none, is found before anything is sent.
func TestWhoIsNotTrustedIsSentNothing(t *testing.T) {
	var asked atomic.Int64
	untrusted, plain := httptest.NewTLSServer(missing(&asked)), httptest.NewServer(missing(&asked))
	defer untrusted.Close()
	defer plain.Close()
	untrusted.Config.ErrorLog, plain.Config.ErrorLog = log.New(io.Discard, "", 0), log.New(io.Discard, "", 0)
	for name, url := range map[string]string{
		"an unknown authority": untrusted.URL,
		"no TLS":               "https" + strings.TrimPrefix(plain.URL, "http"),
	} {
		t.Run(name, func(t *testing.T) {
			s := &dynamolease.Store{Table: "locks", Client: dynamolease.NewClientFrom(dynamodb.Options{
				Region: "eu-west-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
			})}
			_, err := s.Acquire(t.Context(), lease.AcquireRequest{Name: anyLease.Name, TTL: time.Minute})
			if !errors.Is(err, lease.ErrMisconfigured) || errors.Is(err, lease.ErrOutcomeUnknown) {
				t.Errorf("got %v, want ErrMisconfigured", err)
			}
		})
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests arrived", asked.Load())
	}
}

func TestAClientIsHastyUnlessTheConfigurationIsNot(t *testing.T) {
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("eu-west-1"))
	if err != nil {
		t.Fatal(err)
	}
	o := dynamolease.NewClient(cfg).Options()
	h, ok := o.HTTPClient.(*awshttp.BuildableClient)
	if !ok || h.GetTimeout() != time.Second || o.Retryer.MaxAttempts() != 3 {
		t.Errorf("got %T and %d attempts, want one second and 3", o.HTTPClient, o.Retryer.MaxAttempts())
	}
	cfg.HTTPClient = http.DefaultClient
	if got := dynamolease.NewClient(cfg).Options().HTTPClient; got != http.DefaultClient {
		t.Errorf("got %v, want the caller's own client", got)
	}
}
