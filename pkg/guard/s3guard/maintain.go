package s3guard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Seen returns what is known of an object: the largest token of each lock that it
// is bound to, zero where none was seen. Of an object that was never guarded it is
// empty.
func (g *Guard) Seen(ctx context.Context, key string) (map[string]fence.Token, error) {
	err := g.check(key)
	if err == nil {
		var p *pointer
		if p, err = g.read(ctx, key); err == nil {
			return p.Tokens, nil
		}
	}
	return nil, fmt.Errorf("s3guard: seen %s: %w", g.resource(key), err)
}

// Reset has an object take tokens from those of the holding on, and binds it to the
// declared locks, whatever was seen before. It repairs what a wrong token has shut,
// one that no grant had. It is for an operator: a holder that was replaced is
// accepted again if its token is not below the new one, so take that of a grant
// made now. It fails with [fence.ErrNotApplied] if the object is changed meanwhile.
func (g *Guard) Reset(ctx context.Context, h fence.Holding, key string) error {
	declared, err := h.Declare(g.Locks, g.resource(key))
	if err == nil {
		err = g.check(key)
	}
	if err == nil {
		err = g.reset(ctx, h, key, declared)
	}
	if err != nil {
		return fmt.Errorf("s3guard: reset %s: %w", g.resource(key), err)
	}
	return nil
}

func (g *Guard) reset(ctx context.Context, h fence.Holding, key string, declared []string) error {
	p, err := g.read(ctx, key)
	if err != nil {
		return notApplied(err)
	}
	next := p.next(rand.Text(), h, declared)
	for _, lock := range declared {
		next.Tokens[lock] = 0
	}
	for lock, token := range h.All() {
		next.Tokens[lock] = token
	}
	err = g.replace(ctx, key, p, next)
	if outcome := judge(err); outcome == overtaken || outcome == failed {
		return notApplied(err)
	}
	return err
}

// List visits the objects whose keys begin with prefix, in their order, until visit
// returns false. It leaves out those that were deleted or never written, which S3
// itself lists too, and what is no object of the guard. It makes a request for each.
func (g *Guard) List(ctx context.Context, prefix string, visit func(key string, info Info) bool) error {
	err := g.pointers(ctx, prefix, func(key string, _ types.Object, p *pointer) bool {
		return p.Data == nil || visit(key, p.info())
	})
	if err != nil {
		return fmt.Errorf("s3guard: list %s: %w", g.resource(prefix), err)
	}
	return nil
}

// Prune forgets the tokens of objects whose keys begin with prefix, that were
// deleted or never written, and whose last change was made before a time. It
// returns how many it has forgotten. It is safe if no holder that was replaced
// before that time is still to write: a month is a good choice, where no process
// sleeps for longer. It deletes with If-Match: on a server that ignores that, run it
// only while nobody writes.
func (g *Guard) Prune(ctx context.Context, prefix string, before time.Time) (objects int, err error) {
	var left leftAlone
	left.add(g.pointers(ctx, prefix, func(key string, o types.Object, p *pointer) bool {
		if p.Data != nil || o.LastModified == nil || !o.LastModified.Before(before.Truncate(time.Second)) {
			return true
		}
		_, err := g.Client.DeleteObject(ctx, &s3.DeleteObjectInput{
			Bucket: &g.Bucket, Key: &key, IfMatch: &p.etag, ExpectedBucketOwner: set(g.ExpectedBucketOwner),
		})
		if err == nil {
			objects++
		} else if judge(err) != overtaken { // or somebody has written meanwhile
			left.add(err)
		}
		return true
	}))
	if err := left.err(); err != nil {
		return objects, fmt.Errorf("s3guard: prune %s: %w", g.resource(prefix), err)
	}
	return objects, nil
}

// pointers visits those whose keys begin with prefix, until visit returns false.
func (g *Guard) pointers(ctx context.Context, prefix string,
	visit func(key string, o types.Object, p *pointer) bool) error {
	pages := s3.NewListObjectsV2Paginator(g.Client, &s3.ListObjectsV2Input{
		Bucket: &g.Bucket, Prefix: aws.String(prefix), ExpectedBucketOwner: set(g.ExpectedBucketOwner),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			key := aws.ToString(o.Key)
			if strings.HasPrefix(key, g.dataPrefix()) || aws.ToInt64(o.Size) > longest {
				continue
			}
			p, err := g.read(ctx, key)
			switch {
			case errors.Is(err, errNoPointer) || err == nil && p.etag == "": // somebody's file, or it is gone
			case err != nil:
				return err
			case !visit(key, o, p):
				return nil
			}
		}
	}
	return nil
}
