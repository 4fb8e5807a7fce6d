package s3guard_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

func wantKinds(t *testing.T, n *network, want ...string) {
	t.Helper()
	if got := kinds(n.Sent()); !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestAWriteIsThreeRequestsAndTwoAfterAClaim(t *testing.T) {
	g, n := newGuard(t)
	ctx := t.Context()
	body := func() *strings.Reader { return strings.NewReader("a film") }
	check := func(err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		wantKinds(t, n, want...)
	}
	n.Sent()
	o := g.Object(holding(5), "film.mp4")
	check(o.Write(ctx, body(), s3guard.About{}), "GET pointer", "PUT data", "PUT pointer")
	check(o.Write(ctx, body(), s3guard.About{}), "PUT data", "PUT pointer")
	o = g.Object(holding(6), "film.mp4")
	check(o.Claim(ctx), "GET pointer", "PUT pointer")
	check(o.Write(ctx, body(), s3guard.About{}), "PUT data", "PUT pointer")
	check(o.Claim(ctx), "GET pointer")
	check(o.Delete(ctx), "PUT pointer")
	check(g.Object(holding(6), "film.mp4").Delete(ctx), "GET pointer", "PUT pointer")

	err := g.Object(holding(5), "film.mp4").Write(ctx, body(), s3guard.About{})
	wantStale(t, err, 5, 6)
	wantKinds(t, n, "GET pointer")
}

func TestWhatIsSaidOfTheBytesIsKept(t *testing.T) {
	g, _ := newGuard(t)
	about := s3guard.About{
		ContentType: "video/mp4", ContentEncoding: "gzip", CacheControl: "max-age=60", Metadata: map[string]string{"camera": "b"},
	}
	if err := g.Object(holding(5), "film.mp4").Write(t.Context(), strings.NewReader("a film"), about); err != nil {
		t.Fatal(err)
	}
	info, err := g.Stat(t.Context(), "film.mp4")
	if err != nil {
		t.Fatal(err)
	}
	head := headRaw(t, g, info.DataKey)
	if info.Size != 6 || info.ETag != *head.ETag || info.Tokens[lock] != 5 || !reflect.DeepEqual(info.About, about) {
		t.Errorf("got %+v", info)
	}
	content, err := g.Get(t.Context(), "film.mp4")
	if err != nil {
		t.Fatal(err)
	}
	_ = content.Body.Close()
	if !reflect.DeepEqual(content.About, about) {
		t.Errorf("got %+v, want %+v", content.About, about)
	}
	got := s3guard.About{ContentType: *head.ContentType, ContentEncoding: *head.ContentEncoding, CacheControl: *head.CacheControl, Metadata: head.Metadata}
	if !reflect.DeepEqual(got, about) {
		t.Errorf("the data has %+v, want %+v", got, about)
	}
}

func TestRefusalsAreObserved(t *testing.T) {
	g, _ := newGuard(t)
	var seen []error
	g.Observer = func(_ context.Context, err error) { seen = append(seen, err) }
	write(t, g, "film.mp4", 5, "a film")
	stale := g.Object(holding(4), "film.mp4").Claim(t.Context())
	other := g.Claim(t.Context(), fence.Holding{Lock: "tests/another", Token: 9}, "film.mp4")
	_ = g.Object(holding(0), "film.mp4").Claim(t.Context()) // that is a mistake, not a refusal
	if len(seen) != 2 || seen[0] != stale || seen[1] != other {
		t.Errorf("saw %v, want %v and %v", seen, stale, other)
	}
}

func TestAKeyThatTheDataCouldHaveIsRefused(t *testing.T) {
	g, n := newGuard(t)
	n.Sent()
	for _, key := range []string{"", ".pawl/", ".pawl/film.mp4"} {
		for name, c := range changes {
			if err := c.do(t.Context(), g.Object(holding(5), key)); !errors.Is(err, fence.ErrNotApplied) {
				t.Errorf("%s %q: got error %v, want ErrNotApplied", name, key, err)
			}
		}
		if _, err := g.Get(t.Context(), key); err == nil {
			t.Errorf("get %q: got no error", key)
		}
	}
	wantKinds(t, n)
}

// Each request that can carry them must: one without ExpectedBucketOwner could
// go to a stranger's bucket, one without the key of SSE-C would fail or write in
// the clear.
func TestOwnerAndEncryptionGoWithEveryRequest(t *testing.T) {
	const pointer = `{"pawl_pointer":1,"id":"x","tokens":{"tests/render":5},"data":{"key":".pawl/film.mp4/Y"}}`
	const list = `<ListBucketResult><Contents><Key>.pawl/film.mp4/ABCDEFGHIJKLMNOPQRSTUVWXYZ.0c5f9fd4</Key><LastModified>2020-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>`
	n := newNetwork(t)
	none, tag := http.Header{}, http.Header{"Etag": {`"e"`}}
	for kind, f := range map[string]fault{
		"GET pointer": answer(200, tag, pointer), "PUT pointer": answer(200, tag, ""),
		"PUT data": answer(200, tag, ""), "GET data": answer(200, tag, "a film"), "DELETE data": answer(204, none, ""),
		"POST data":  answer(200, none, "<R><UploadId>u</UploadId><ETag>e</ETag></R>"),
		"GET bucket": answer(200, none, list), "POST bucket": answer(200, none, "<DeleteResult/>"),
	} {
		n.Every(kind, f)
	}
	g := &s3guard.Guard{
		Client: n.client(localtest.S3ForTest(t).Options()), Bucket: "films", ExpectedBucketOwner: "111122223333", PartSize: 5 << 20,
	}
	everything := func() {
		t.Helper()
		o := g.Object(holding(6), "film.mp4")
		_, get := g.Get(t.Context(), "film.mp4")
		_, stat := g.Stat(t.Context(), "film.mp4")
		_, sweep := g.Sweep(t.Context(), "", all())
		err := errors.Join(o.Claim(t.Context()), o.Write(t.Context(), strings.NewReader("a film"), s3guard.About{}),
			o.Write(t.Context(), bytes.NewReader(noise(11<<20)), s3guard.About{}), o.Delete(t.Context()), get, stat, sweep)
		if err != nil {
			t.Error(err)
		}
		n.Every("PUT data", say(403, "AccessDenied"))
		if err := o.Write(t.Context(), bytes.NewReader(noise(11<<20)), s3guard.About{}); !errors.Is(err, fence.ErrNotApplied) {
			t.Errorf("got error %v, want ErrNotApplied", err)
		}
		n.Every("PUT data", answer(200, tag, ""))
	}
	carry := func(what string, header map[string]string, these func(sent) bool) {
		t.Helper()
		found := make(map[string]bool)
		for _, s := range n.Sent() {
			for name, want := range header {
				if got := s.header.Get(name); these(s) && got != want {
					t.Errorf("%s: %s %s has %s %q, want %q", what, s.kind, s.url, name, got, want)
				}
			}
			found[s.kind] = true
		}
		for _, kind := range []string{"GET pointer", "PUT pointer", "PUT data", "POST data", "DELETE data", "GET data", "GET bucket", "POST bucket"} {
			if !found[kind] {
				t.Errorf("%s: no %s was sent", what, kind)
			}
		}
	}
	isPart := func(s sent) bool { return strings.Contains(s.url, "partNumber") }
	creates := func(s sent) bool {
		return strings.HasPrefix(s.kind, "PUT") && !isPart(s) || s.kind == "POST data" && strings.Contains(s.url, "uploads")
	}

	everything()
	carry("owner", map[string]string{"X-Amz-Expected-Bucket-Owner": "111122223333"}, func(sent) bool { return true })

	g.Encryption = types.ServerSideEncryptionAes256
	everything()
	carry("SSE-S3", map[string]string{"X-Amz-Server-Side-Encryption": "AES256"}, creates)

	g.Encryption, g.KMSKeyID = types.ServerSideEncryptionAwsKms, "alias/films"
	everything()
	carry("SSE-KMS", map[string]string{
		"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "alias/films",
	}, creates)

	g.Encryption, g.KMSKeyID, g.CustomerKey = "", "", []byte("0123456789abcdef0123456789abcdef")
	everything()
	carry("SSE-C", map[string]string{
		"X-Amz-Server-Side-Encryption-Customer-Algorithm": "AES256",
		"X-Amz-Server-Side-Encryption-Customer-Key":       "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
		"X-Amz-Server-Side-Encryption-Customer-Key-Md5":   "hRasmdxgYDKV3nvbahU1MA==",
	}, func(s sent) bool {
		return creates(s) || isPart(s) || s.kind == "GET pointer" || s.kind == "GET data" || s.kind == "POST data"
	})
}
