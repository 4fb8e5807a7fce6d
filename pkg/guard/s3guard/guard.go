package s3guard

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// ErrNotFound means that an object was deleted or never written.
var ErrNotFound = errors.New("not found")

// A Guard guards the objects of a bucket. All who write or read an object must
// agree on every field but Client, PartSize and Observer. It is safe for concurrent
// use, and must not be changed after the first.
//
// Its changes fail with a [fence.StaleError] when it has seen a newer token, with a
// [fence.OtherLockError] when the object belongs to another lock, with
// [fence.ErrInvalid], or with [fence.ErrNotApplied]. After any other error the
// outcome is unknown, and the change may still be made for as long as S3 takes a
// request late: its signature is good for 15 minutes. Doing the same again does no
// harm. A refusal comes with the knowledge that nothing was changed, unless more
// changes than a pointer remembers have hidden it.
//
// While others change the object at the same time they try again, until ctx ends.
type Guard struct {
	// Client reaches the bucket. How often it tries again when S3 fails, and
	// how long it waits before that, goes for the guard too.
	Client *s3.Client

	// Bucket is its name.
	Bucket string

	// Locks are the full names of the locks that share every object, whether a
	// caller holds them or not. None means those that the caller holds. See
	// [fence.Holding.Admit] for how one is added.
	Locks []string

	// DataPrefix begins the keys of the data objects, and no keys of objects.
	// Empty means ".pawl/".
	DataPrefix string

	// ExpectedBucketOwner is the account that must own the bucket, or S3
	// refuses every request. Empty means that it may be any.
	ExpectedBucketOwner string

	// Encryption is what S3 encrypts with: SSE-S3 (AES256) or SSE-KMS (aws:kms,
	// with KMSKeyID unless it is the account's default key). Empty means what
	// the bucket says.
	Encryption types.ServerSideEncryption
	KMSKeyID   string

	// CustomerKey, 32 bytes, is for SSE-C instead: S3 encrypts with it and
	// forgets it. Readers need it too.
	CustomerKey []byte

	// PartSize is how many bytes of a longer body go into one part of a
	// multipart upload; about six parts are in memory at a time. Zero means 8
	// MiB, and S3 takes no less than 5 MiB.
	PartSize int64

	// Observer is told of every refusal. Nil means nobody is.
	Observer fence.Observer
}

// Claim has the guard see the tokens and changes nothing else: from now on older
// holders are refused. Claim an object before reading it, or else an older holder
// may change what was read. It takes two requests, or one if the guard has seen the
// tokens.
func (g *Guard) Claim(ctx context.Context, h fence.Holding, key string) error {
	return g.Object(h, key).Claim(ctx)
}

// Write replaces the object's bytes by what body has, and what is said of them.
// Readers see all of it or nothing. It takes three requests, and more for a body
// that is longer than a part.
//
// A token that is known to be stale is refused before body is read.
func (g *Guard) Write(ctx context.Context, h fence.Holding, key string, body io.Reader, about About) error {
	return g.Object(h, key).Write(ctx, body, about)
}

// Delete removes the object; the guard still knows the tokens. It takes two
// requests.
func (g *Guard) Delete(ctx context.Context, h fence.Holding, key string) error {
	return g.Object(h, key).Delete(ctx)
}

func (g *Guard) dataPrefix() string {
	if g.DataPrefix == "" {
		return ".pawl/"
	}
	return g.DataPrefix
}

// resource names an object in S3's own terms.
func (g *Guard) resource(key string) string { return "s3://" + g.Bucket + "/" + key }

// check refuses keys that cannot be a pointer's. One among the data would be
// swept away.
func (g *Guard) check(key string) error {
	if key == "" || strings.HasPrefix(key, g.dataPrefix()) {
		return fmt.Errorf("%w: the key %q is empty or begins with the data prefix %q",
			fence.ErrNotApplied, key, g.dataPrefix())
	}
	return nil
}

// customerKey returns the three headers of SSE-C, or none.
func (g *Guard) customerKey() (algorithm, key, sum *string) {
	if len(g.CustomerKey) == 0 {
		return nil, nil, nil
	}
	digest := md5.Sum(g.CustomerKey) // a checksum for S3, no secret
	return set("AES256"),
		set(base64.StdEncoding.EncodeToString(g.CustomerKey)),
		set(base64.StdEncoding.EncodeToString(digest[:]))
}

// set is a parameter of the SDK: nil when empty.
func set(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
