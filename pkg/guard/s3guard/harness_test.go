package s3guard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/guardtest"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

const lock = "tests/render"

func holding(token fence.Token) fence.Holding { return fence.Holding{Lock: lock, Token: token} }

// newGuard returns the guard of a new bucket and the network it is reached by.
func newGuard(t testing.TB) (*s3guard.Guard, *network) {
	t.Helper()
	server := localtest.S3ForTest(t)
	bucket := server.BucketForTest(t)
	n := newNetwork(t)
	return &s3guard.Guard{Client: n.client(server.Options()), Bucket: bucket}, n
}

// client returns one that uses n and does not wait before it tries again.
func (n *network) client(o s3.Options) *s3.Client {
	o.HTTPClient = n
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.RateLimiter = ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
	})
	return s3.New(o)
}

// overHere is the same guard by another network: another process.
func overHere(t testing.TB, g *s3guard.Guard) *s3guard.Guard {
	there := *g
	there.Client = newNetwork(t).client(localtest.S3ForTest(t).Options())
	return &there
}

func write(t testing.TB, g *s3guard.Guard, key string, token fence.Token, text string) {
	t.Helper()
	if err := g.Object(holding(token), key).Write(t.Context(), strings.NewReader(text), s3guard.About{}); err != nil {
		t.Fatal(err)
	}
}

func get(ctx context.Context, g *s3guard.Guard, key string) (string, error) {
	c, err := g.Get(ctx, key)
	if err != nil {
		return "", err
	}
	defer c.Body.Close()
	b, err := io.ReadAll(c.Body)
	return string(b), err
}

func holds(t testing.TB, g *s3guard.Guard, key, want string) {
	t.Helper()
	if got, err := get(t.Context(), g, key); got != want || err != nil {
		t.Errorf("%s: got %.60q, error %v, want %.60q", key, got, err, want)
	}
}

// wantStale checks that err says that token has been overtaken by seen.
func wantStale(t testing.TB, err error, token, seen fence.Token) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || stale.Token != token || stale.Seen != seen || stale.Lock != lock {
		t.Errorf("got error %v, want that %d is stale after %d", err, token, seen)
	}
}

// keys returns all keys in the bucket that begin with prefix.
func keys(t testing.TB, g *s3guard.Guard, prefix string) (keys []string) {
	t.Helper()
	out, err := g.Client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &g.Bucket, Prefix: aws.String(prefix)})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out.Contents {
		keys = append(keys, aws.ToString(o.Key))
	}
	return keys
}

// putRaw and those below go around the guard.
func putRaw(t testing.TB, g *s3guard.Guard, key, body string) {
	t.Helper()
	in := &s3.PutObjectInput{Bucket: &g.Bucket, Key: &key, Body: strings.NewReader(body)}
	if _, err := g.Client.PutObject(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func getRaw(t testing.TB, g *s3guard.Guard, key string) string {
	t.Helper()
	out, err := g.Client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &g.Bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func headRaw(t testing.TB, g *s3guard.Guard, key string) *s3.HeadObjectOutput {
	t.Helper()
	out, err := g.Client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &g.Bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func removeRaw(t testing.TB, g *s3guard.Guard, key string) {
	t.Helper()
	if _, err := g.Client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &g.Bucket, Key: &key}); err != nil {
		t.Fatal(err)
	}
}

// all is later than anything that a test uploads.
func all() time.Time { return time.Now().Add(time.Hour) }

func noise(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i>>16 ^ i>>8 ^ i*31)
	}
	return b
}

// store makes objects for the suite, each in the same bucket.
type store struct {
	t     *testing.T
	guard *s3guard.Guard
}

var objects atomic.Int64

func (s store) New(_ context.Context, locks ...string) (guardtest.Resource, error) {
	g := overHere(s.t, s.guard)
	g.Locks = locks
	return object{s.t, g, fmt.Sprintf("objects/%d.txt", objects.Add(1))}, nil
}

func (s store) Reopen(_ context.Context, r guardtest.Resource, locks ...string) (guardtest.Resource, error) {
	o := r.(object)
	o.guard = overHere(s.t, o.guard)
	o.guard.Locks = locks
	return o, nil
}

type object struct {
	t     *testing.T
	guard *s3guard.Guard
	key   string
}

func (o object) Write(ctx context.Context, h fence.Holding, text string) error {
	return o.guard.Write(ctx, h, o.key, bytes.NewReader([]byte(text)), s3guard.About{})
}

func (o object) Claim(ctx context.Context, h fence.Holding) error {
	return o.guard.Claim(ctx, h, o.key)
}

func (o object) Delete(ctx context.Context, h fence.Holding) error {
	return o.guard.Delete(ctx, h, o.key)
}

func (o object) Seen(ctx context.Context) (map[string]fence.Token, error) {
	return o.guard.Seen(ctx, o.key)
}

func (o object) Reset(ctx context.Context, h fence.Holding) error {
	return o.guard.Reset(ctx, h, o.key)
}

func (o object) Prune(ctx context.Context, before time.Time) error {
	_, err := o.guard.Prune(ctx, o.key, before)
	return err
}

func (o object) Twice(between func()) guardtest.Resource {
	return o.hooked(func(forward forward) (response, error) {
		first, err := forward()
		if err != nil {
			return nil, err
		}
		_ = first.Body.Close() // lost, and a proxy sends again
		between()
		return forward()
	})
}

func (o object) Asleep(stopped func()) guardtest.Resource {
	return o.hooked(first(stopped, pass))
}

// hooked has something befall the next change.
func (o object) hooked(f fault) guardtest.Resource {
	n := newNetwork(o.t)
	here := *o.guard
	here.Client = n.client(localtest.S3ForTest(o.t).Options())
	o.guard = &here
	n.Next("PUT pointer", f)
	return o
}

func (o object) Read(ctx context.Context) (string, bool, error) {
	text, err := get(ctx, o.guard, o.key)
	if errors.Is(err, s3guard.ErrNotFound) {
		return "", false, nil
	}
	return text, err == nil, err
}

func TestGuard(t *testing.T) {
	g, _ := newGuard(t)
	guardtest.Run(t, func(t *testing.T) guardtest.Store { return store{t, g} })
}

func TestGuardUnderTheHammer(t *testing.T) {
	g, _ := newGuard(t)
	guardtest.Hammer(t, func(t *testing.T) guardtest.Store { return store{t, g} })
}
