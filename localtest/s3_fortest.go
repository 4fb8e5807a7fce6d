package localtest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var s3ForTest = sync.OnceValues(func() (*S3, error) { return StartS3(context.Background()) })

// S3ForTest returns the server that all tests of this test binary share; each
// test makes its own buckets. The server ends with the binary. Where there is no
// S3 to be had it skips the test, but under CI it fails.
func S3ForTest(t testing.TB) *S3 {
	t.Helper()
	s, err := s3ForTest()
	skipWithout(t, err, errNoS3)
	return s
}

// BucketForTest returns the name of a new bucket, which is emptied and deleted
// when the test ends.
func (s *S3) BucketForTest(t testing.TB) string {
	t.Helper()
	c, name := s3.New(s.Options()), "pawl-"+strings.ToLower(rand.Text())
	in := &s3.CreateBucketInput{Bucket: &name}
	if s.region != "us-east-1" { // which AWS refuses to be told
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{
			LocationConstraint: types.BucketLocationConstraint(s.region),
		}
	}
	if _, err := c.CreateBucket(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := removeBucket(ctx, c, name); err != nil {
			t.Errorf("left behind bucket %s: %v", name, err)
		}
	})
	return name
}

func removeBucket(ctx context.Context, c *s3.Client, name string) error {
	objects := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: &name})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			if _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &name, Key: o.Key}); err != nil {
				return err
			}
		}
	}
	_, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name})
	return err
}
