package s3guard

import (
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// ErrNotApplied means that a change failed for another reason than its token,
// that nothing was changed, and that it will not happen later either. It wraps
// that reason.
var ErrNotApplied = errors.New("not applied")

// ErrNotFound means that an object was deleted or never written.
var ErrNotFound = errors.New("not found")

// A Guard stands before the objects of a bucket. All who write or read an object
// must agree on every field but Client, PartSize and Observer. It is safe for
// concurrent use, and must not be changed after the first.
type Guard struct {
	// Client reaches the bucket. How often it tries again when S3 fails, and
	// how long it waits before that, goes for the guard too.
	Client *s3.Client

	// Bucket is its name.
	Bucket string

	// Locks are the full names of locks whose holders share every object. An
	// object then takes the tokens of each of them and compares each with its
	// own. None means that an object belongs to the lock of its first change.
	Locks []string

	// DataPrefix begins the keys of the data objects, and no other keys. Empty
	// means ".pawl/".
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

	// Observer is told of refusals.
	Observer fence.Observer
}

// Object returns a guarded object in the hands of the grant of a lock, given by
// its full name, that has the token. It sends no request.
func (g *Guard) Object(key, lock string, token fence.Token) *Object {
	return &Object{guard: g, key: key, lock: lock, token: token}
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
		return fmt.Errorf("%w: the key %q is empty or begins with the data prefix %q", ErrNotApplied, key, g.dataPrefix())
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
