package s3guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A pointer is the body of the object under the key that callers use. It never
// has the same bytes twice, so neither does its ETag.
type pointer struct {
	Format   int                    `json:"pawl_pointer"` // 1
	ID       string                 `json:"id"`           // random, of this one
	Replaces string                 `json:"replaces"`     // ID of the one before, empty if there was none
	Tokens   map[string]fence.Token `json:"tokens"`       // by the full name of the lock
	Data     *data                  `json:"data"`         // null after a delete, or a claim before the first write

	etag string // empty when there is no pointer
}

type data struct {
	Key         string `json:"key"`
	Size        int64  `json:"size"`
	ETag        string `json:"etag"`
	ContentType string `json:"content_type"`
}

// admit returns why a change must not be made, if it must not.
func (p *pointer) admit(declared []string, lock string, token fence.Token, resource string) error {
	if len(declared) > 0 && !slices.Contains(declared, lock) {
		return &fence.OtherLockError{Lock: lock, Bound: strings.Join(declared, ", "), Resource: resource}
	}
	if seen, bound := p.Tokens[lock]; bound {
		if seen > token {
			return &fence.StaleError{Lock: lock, Token: token, Seen: seen, Resource: resource}
		}
		return nil
	}
	for _, bound := range slices.Sorted(maps.Keys(p.Tokens)) {
		if !slices.Contains(declared, bound) {
			return &fence.OtherLockError{Lock: lock, Bound: bound, Resource: resource}
		}
	}
	return nil
}

// next returns the pointer that follows p when it has seen the token.
func (p *pointer) next(id, lock string, token fence.Token) *pointer {
	tokens := map[string]fence.Token{}
	maps.Copy(tokens, p.Tokens)
	tokens[lock] = token
	return &pointer{Format: 1, ID: id, Replaces: p.ID, Tokens: tokens, Data: p.Data}
}

// read returns the pointer at a key, which is empty when there is none.
func (g *Guard) read(ctx context.Context, key string) (*pointer, error) {
	in := &s3.GetObjectInput{Bucket: &g.Bucket, Key: &key, ExpectedBucketOwner: set(g.ExpectedBucketOwner)}
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = g.customerKey()
	out, err := g.Client.GetObject(ctx, in)
	if missing := (*types.NoSuchKey)(nil); errors.As(err, &missing) {
		return &pointer{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	const most = 1 << 20 // what is longer is somebody's data
	body, err := io.ReadAll(io.LimitReader(out.Body, most))
	if err != nil {
		return nil, err
	}
	p := &pointer{etag: aws.ToString(out.ETag)}
	if err := json.Unmarshal(body, p); err != nil || p.Format != 1 || p.ID == "" || p.etag == "" {
		return nil, fmt.Errorf("%s is not a pointer of this guard", g.resource(key))
	}
	return p, nil
}

// replace puts next in the place of old, if old is still there. It asks once:
// only then is it certain what a failed condition means.
func (g *Guard) replace(ctx context.Context, key string, old, next *pointer) error {
	body, err := json.Marshal(next)
	if err != nil {
		return err
	}
	in := &s3.PutObjectInput{
		Bucket:               &g.Bucket,
		Key:                  &key,
		Body:                 bytes.NewReader(body),
		ContentType:          set("application/json"),
		ExpectedBucketOwner:  set(g.ExpectedBucketOwner),
		ServerSideEncryption: g.Encryption,
		SSEKMSKeyId:          set(g.KMSKeyID),
		IfMatch:              set(old.etag),
	}
	if old.etag == "" {
		in.IfNoneMatch = set("*")
	}
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = g.customerKey()
	out, err := g.Client.PutObject(ctx, in, func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return err
	}
	next.etag = aws.ToString(out.ETag)
	return nil
}
