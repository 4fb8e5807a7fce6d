package s3guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Sweep deletes the data objects that were uploaded before a time and that no
// pointer leads to, for all objects whose keys begin with prefix: what was
// replaced or deleted, and what refused and failed writes left behind. It
// returns how many it has deleted, also when it fails.
//
// What it cannot read, such as a file of somebody else's in the place of a pointer,
// or delete, it leaves alone and goes on; the error says what that was.
//
// It may run beside writers if before is longer ago than any write takes, with
// its upload, and 15 minutes more for requests that S3 takes late; a day is a
// good choice. It makes one request for each object, and two for every 1,000 data
// objects.
func (g *Guard) Sweep(ctx context.Context, prefix string, before time.Time) (deleted int, err error) {
	var left leftAlone
	pages := s3.NewListObjectsV2Paginator(g.Client, &s3.ListObjectsV2Input{
		Bucket:              &g.Bucket,
		Prefix:              aws.String(g.dataPrefix() + prefix),
		ExpectedBucketOwner: set(g.ExpectedBucketOwner),
	})
	for pages.HasMorePages() && ctx.Err() == nil {
		page, err := pages.NextPage(ctx)
		if err != nil {
			left.add(err)
			break
		}
		leftovers := g.leftovers(ctx, page.Contents, before, &left)
		n, err := g.remove(ctx, leftovers)
		deleted += n
		left.add(err)
	}
	left.add(ctx.Err())
	if err := left.err(); err != nil {
		return deleted, fmt.Errorf("s3guard: sweep %s: %w", g.resource(g.dataPrefix()+prefix), err)
	}
	return deleted, nil
}

// leftAlone are the errors of what a sweep could not do, the first few in full.
type leftAlone struct {
	first error
	more  int
	n     int
}

const tellOf = 10

func (l *leftAlone) add(err error) {
	switch {
	case err == nil:
	case l.n < tellOf:
		l.n++
		l.first = errors.Join(l.first, err)
	default:
		l.more++
	}
}

func (l *leftAlone) err() error {
	if l.more > 0 {
		return errors.Join(l.first, fmt.Errorf("and %d more", l.more))
	}
	return l.first
}

// leftovers returns those that no pointer leads to. What is old enough and is
// not pointed to now will never be again: a key is pointed to by the write that
// made it, or not at all.
func (g *Guard) leftovers(ctx context.Context, found []types.Object, before time.Time,
	left *leftAlone) []types.ObjectIdentifier {
	// S3 may say that an object is up to a second older than it is.
	before = before.Truncate(time.Second)
	kept := make(map[string]*string) // key: the data key that its pointer has, nil if it cannot be read
	var leftovers []types.ObjectIdentifier
	for _, f := range found {
		dataKey := aws.ToString(f.Key)
		key, ours := g.owner(dataKey)
		if !ours || f.LastModified == nil || !f.LastModified.Before(before) || ctx.Err() != nil {
			continue
		}
		if _, read := kept[key]; !read {
			p, err := g.read(ctx, key)
			left.add(err)
			switch {
			case err != nil:
				kept[key] = nil
			case p.Data == nil:
				kept[key] = aws.String("")
			default:
				kept[key] = &p.Data.Key
			}
		}
		if kept[key] != nil && *kept[key] != dataKey {
			leftovers = append(leftovers, types.ObjectIdentifier{Key: f.Key})
		}
	}
	return leftovers
}

func (g *Guard) remove(ctx context.Context, these []types.ObjectIdentifier) (int, error) {
	if len(these) == 0 {
		return 0, nil
	}
	out, err := g.Client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket:              &g.Bucket,
		Delete:              &types.Delete{Objects: these, Quiet: aws.Bool(true)},
		ExpectedBucketOwner: set(g.ExpectedBucketOwner),
	})
	if err != nil {
		return 0, err
	}
	var failures error
	for _, e := range out.Errors {
		failures = errors.Join(failures,
			fmt.Errorf("delete %s: %s: %s", aws.ToString(e.Key), aws.ToString(e.Code), aws.ToString(e.Message)))
	}
	return len(these) - len(out.Errors), failures
}
