package s3guard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
)

// dataKey returns the key of new bytes for the object at key. It is never used
// again.
func (g *Guard) dataKey(key string) string {
	return g.dataPrefix() + key + "/" + rand.Text() + g.sign()
}

// sign ends the data keys of this guard. Where the prefix of another is within
// ours, or ours within it, its data is not taken for our own.
func (g *Guard) sign() string {
	sum := sha256.Sum256([]byte(g.dataPrefix()))
	return "." + hex.EncodeToString(sum[:4])
}

// owner returns the key of the object that a data key is for, and false if the
// guard has not made that key.
func (g *Guard) owner(dataKey string) (key string, ok bool) {
	rest, ours := strings.CutPrefix(dataKey, g.dataPrefix())
	rest, signed := strings.CutSuffix(rest, g.sign())
	i := strings.LastIndexByte(rest, '/')
	return rest[:max(i, 0)], ours && signed && i > 0 && len(rest)-i-1 == len(rand.Text())
}

// upload stores the bytes where no pointer leads yet.
func (g *Guard) upload(ctx context.Context, key string, body io.Reader, about About) (*data, error) {
	d := &data{Key: g.dataKey(key), About: about}
	in := &transfermanager.UploadObjectInput{
		Bucket:               &g.Bucket,
		Key:                  &d.Key,
		Body:                 body,
		ContentType:          set(about.ContentType),
		ContentEncoding:      set(about.ContentEncoding),
		CacheControl:         set(about.CacheControl),
		Metadata:             about.Metadata,
		ExpectedBucketOwner:  set(g.ExpectedBucketOwner),
		ServerSideEncryption: types.ServerSideEncryption(g.Encryption),
		SSEKMSKeyID:          set(g.KMSKeyID),
	}
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = g.customerKey()
	out, err := transfermanager.New(g.Client, func(o *transfermanager.Options) {
		o.PartSizeBytes = g.PartSize
		o.MultipartUploadThreshold = g.PartSize
		o.FailTimeout = 30 * time.Second // to abort, also when ctx has ended
	}).UploadObject(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", g.resource(d.Key), err)
	}
	d.ETag, d.Size = aws.ToString(out.ETag), aws.ToInt64(out.ContentLength)
	return d, nil
}
