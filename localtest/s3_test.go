package localtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// ownS3 starts a versitygw that no other test uses.
func ownS3(t *testing.T) *S3 {
	t.Helper()
	t.Setenv("S3_ENDPOINT", "")
	s, err := StartS3(t.Context())
	skipWithout(t, err, errNoS3)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// putTwice creates an object twice and returns why the second time failed.
func putTwice(t *testing.T, s *S3) error {
	t.Helper()
	c, bucket, key, absent := s3.New(s.Options()), s.BucketForTest(t), "key", "*"
	in := &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("body"), IfNoneMatch: &absent}
	if _, err := c.PutObject(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	_, err := c.PutObject(t.Context(), in)
	return err
}

func TestS3RunsUntilItIsClosedAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := ownS3(t)
	t.Run("in between", func(t *testing.T) {
		if err := putTwice(t, s); err == nil || !strings.Contains(err.Error(), "PreconditionFailed") {
			t.Errorf("got error %v, want that a precondition failed", err)
		}
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.answers(t.Context()); err == nil {
		t.Error("it still answers")
	}
	if left, err := os.ReadDir(os.TempDir()); len(left) > 0 || err != nil {
		t.Errorf("left %v, error %v", left, err)
	}
}

func TestTheS3ThatIsNamedIsUsedAndNotEnded(t *testing.T) {
	own := ownS3(t)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("S3_ENDPOINT", own.Endpoint)
	t.Setenv("AWS_ACCESS_KEY_ID", own.credentials.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", own.credentials.SecretAccessKey)
	t.Setenv("AWS_SESSION_TOKEN", "")
	s, err := StartS3(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || s.Endpoint != own.Endpoint {
		t.Errorf("got %s, error %v, want %s", s.Endpoint, err, own.Endpoint)
	}
	if err := own.answers(t.Context()); err != nil {
		t.Errorf("it was ended: %v", err)
	}

	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	if _, err := StartS3(t.Context()); err == nil || errors.Is(err, errNoS3) || !strings.Contains(err.Error(), "S3_ENDPOINT=") {
		t.Errorf("with a wrong secret: got error %v, want one that names S3_ENDPOINT and is no reason to skip", err)
	}
}

func TestANamedS3IsReachedAsItsNameSays(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "eu-west-3")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for endpoint, region := range map[string]string{
		"http://127.0.0.1:9000":                                    "eu-west-3",
		"https://s3.eu-central-1.amazonaws.com":                    "eu-central-1",
		"https://s3-fips.dualstack.us-west-2.amazonaws.com":        "us-west-2",
		"https://bucket.vpce-1a2b.s3.us-east-2.vpce.amazonaws.com": "us-east-2",
		"https://s3.cn-north-1.amazonaws.com.cn":                   "cn-north-1",
	} {
		if s, err := namedS3(endpoint); err != nil || s.Options().Region != region {
			t.Errorf("%s: got %+v, error %v, want Region %s", endpoint, s, err, region)
		}
	}
	if s, err := namedS3("127.0.0.1:9000"); err == nil {
		t.Errorf("got %+v of what is not a URL", s)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if s, err := namedS3("http://127.0.0.1:9000"); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %+v, error %v, want that credentials are missing", s, err)
	}
}

func TestWithoutAnS3TheErrorSaysWhatToSet(t *testing.T) {
	module(t)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("S3_ENDPOINT", "")
	if _, err := StartS3(t.Context()); !errors.Is(err, errNoS3) || !strings.Contains(err.Error(), "S3_ENDPOINT") {
		t.Errorf("got error %v, want one that names S3_ENDPOINT", err)
	}
}

func TestVersitygwStartsOnAnotherPortWhenOneIsTaken(t *testing.T) {
	_ = ownS3(t) // skips without it
	path, err := versitygw.path("versitygw")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	picked := 0
	s, err := startVersitygw(t.Context(), path, func() (int, error) {
		if picked++; picked == 1 {
			return l.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || picked != 2 {
		t.Errorf("picked %d ports, error %v, want 2", picked, err)
	}
}

func TestVersitygwRunsWhereFilesHaveNoAttributes(t *testing.T) {
	_ = ownS3(t)
	real, err := versitygw.path("versitygw")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "versitygw")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--sidecar*) exec '%s' \"$@\";; esac\necho 'xattrs are not supported' >&2; exit 1\n", real)
	writeFile(t, path, script, 0o755)
	s, err := startVersitygw(context.Background(), path, freePort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := putTwice(t, s); err == nil || !strings.Contains(err.Error(), "PreconditionFailed") {
		t.Errorf("got error %v, want that a precondition failed", err)
	}
}
