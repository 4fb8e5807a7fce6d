package s3guard

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Info is one version of an object. Its bytes never change.
type Info struct {
	// DataKey is where they are in the bucket, for whoever serves them
	// otherwise, as by a presigned URL. They stay there at least until a
	// [Guard.Sweep] after the next change.
	DataKey string

	Size int64 // bytes
	ETag string
	About

	// Tokens are the newest that the guard has seen, by the full names of their
	// locks.
	Tokens map[string]fence.Token
}

// Content is one version of an object and its bytes.
type Content struct {
	Info
	Body io.ReadCloser // the caller closes it
}

// Stat returns what is known of an object, by one request. It fails with
// [ErrNotFound].
func (g *Guard) Stat(ctx context.Context, key string) (Info, error) {
	info, err := g.stat(ctx, key)
	if err != nil {
		return Info{}, fmt.Errorf("s3guard: stat %s: %w", g.resource(key), err)
	}
	return info, nil
}

// Get returns an object, by two requests. It fails with [ErrNotFound], and with
// [ErrReplaced] if the bytes are not those that were written.
func (g *Guard) Get(ctx context.Context, key string) (*Content, error) {
	c, err := g.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("s3guard: get %s: %w", g.resource(key), err)
	}
	return c, nil
}

func (g *Guard) stat(ctx context.Context, key string) (Info, error) {
	if err := g.check(key); err != nil {
		return Info{}, err
	}
	p, err := g.read(ctx, key)
	if err != nil {
		return Info{}, err
	}
	if p.Data == nil {
		return Info{}, ErrNotFound
	}
	return p.info(), nil
}

func (p *pointer) info() Info {
	return Info{DataKey: p.Data.Key, Size: p.Data.Size, ETag: p.Data.ETag, About: p.Data.About, Tokens: p.Tokens}
}

// ErrReplaced means that somebody has put other bytes under the key of an object's
// data, past the guard.
var ErrReplaced = errors.New("the data was replaced")

func (g *Guard) get(ctx context.Context, key string) (*Content, error) {
	for swept := ""; ; {
		info, err := g.stat(ctx, key)
		if err != nil {
			return nil, err
		}
		in := &s3.GetObjectInput{
			Bucket: &g.Bucket, Key: &info.DataKey, IfMatch: set(info.ETag), ExpectedBucketOwner: set(g.ExpectedBucketOwner),
		}
		in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = g.customerKey()
		out, err := g.Client.GetObject(ctx, in)
		if err == nil {
			return &Content{info, out.Body}, nil
		}
		var answer *smithyhttp.ResponseError
		if errors.As(err, &answer) && answer.HTTPStatusCode() == 412 {
			return nil, fmt.Errorf("%s: %w", info.DataKey, ErrReplaced)
		}
		missing := (*types.NoSuchKey)(nil)
		if !errors.As(err, &missing) || info.DataKey == swept {
			return nil, err
		}
		swept = info.DataKey // a newer one has come, and a sweep: follow the pointer again
	}
}
