package s3guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A pointer is the body of the object under the key that callers use. It never
// has the same bytes twice, so neither does its ETag.
type pointer struct {
	Format  int                    `json:"pawl_pointer"` // 1
	ID      string                 `json:"id"`           // random, of this one
	History []string               `json:"history"`      // IDs of those before, the last first; "" is none
	Tokens  map[string]fence.Token `json:"tokens"`       // by the full name of the lock, 0 where none was seen
	Data    *data                  `json:"data"`         // null after a delete, or a claim before the first write

	etag string // empty when there is no pointer
}

// remembered is how many changes may come between the attempt of a writer and its
// look at what became of it.
const remembered = 8

type data struct {
	Key  string `json:"key"`
	Size int64  `json:"size"`
	ETag string `json:"etag"`
	About
}

// next returns the pointer that follows p when it has seen the tokens.
func (p *pointer) next(id string, h fence.Holding, declared []string) *pointer {
	history := append([]string{p.ID}, p.History...)
	n := &pointer{Format: 1, ID: id, History: history[:min(len(history), remembered)], Data: p.Data}
	n.Tokens = make(map[string]fence.Token)
	for _, lock := range declared {
		n.Tokens[lock] = p.Tokens[lock]
	}
	for lock, token := range h.All() {
		n.Tokens[lock] = token
	}
	return n
}

// knows reports whether p has seen the tokens and is bound to the locks.
func (p *pointer) knows(h fence.Holding, declared []string) bool {
	for lock, token := range h.All() {
		if p.Tokens[lock] != token {
			return false
		}
	}
	return len(p.Tokens) == len(declared)
}

// longest is a pointer; what is longer is somebody's data.
const longest = 1 << 20

var errNoPointer = errors.New("not a pointer of this guard")

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
	body, err := io.ReadAll(io.LimitReader(out.Body, longest))
	if err != nil {
		return nil, err
	}
	p := &pointer{etag: aws.ToString(out.ETag)}
	if err := json.Unmarshal(body, p); err != nil || p.Format != 1 || p.ID == "" || p.etag == "" {
		return nil, fmt.Errorf("%s is %w", g.resource(key), errNoPointer)
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
