package gateway

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// What the imitation adds to a function that does nothing.

func BenchmarkAColdInvoke(b *testing.B) {
	for b.Loop() {
		l := &Lambda{Bootstrap: os.Args[0], Env: []string{"ROLE=bootstrap"}}
		if _, err := l.Invoke(b.Context(), []byte(`{}`)); err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

func BenchmarkAWarmInvoke(b *testing.B) {
	l := &Lambda{Bootstrap: os.Args[0], Env: []string{"ROLE=bootstrap"}}
	defer l.Close()
	for b.Loop() {
		if _, err := l.Invoke(b.Context(), []byte(`{}`)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkASignedRequest(b *testing.B) {
	l := &Lambda{Bootstrap: os.Args[0], Env: []string{"ROLE=bootstrap"}}
	defer l.Close()
	srv := httptest.NewServer(&Gateway{Routes: []Route{{Key: "GET /v1/{ns}/lock", Lambda: l}}, Authorizer: IAM("us-east-1", alice)})
	defer srv.Close()
	r, err := http.NewRequest("GET", srv.URL+"/v1/payments/lock?name=a", nil)
	if err != nil {
		b.Fatal(err)
	}
	creds := aws.Credentials{AccessKeyID: alice.ID, SecretAccessKey: alice.Secret}
	if err := v4.NewSigner().SignHTTP(b.Context(), creds, r, hashHex(""), "execute-api", "us-east-1", time.Now()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		resp, err := srv.Client().Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp, err)
		}
		resp.Body.Close()
	}
}
