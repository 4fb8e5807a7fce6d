package s3guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawl-lock/pawl/localtest/rigor"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

func TestOfTwoTokensThatRaceTheHigherOneStays(t *testing.T) {
	g, _ := newGuard(t)
	there := overHere(t, g)
	refused := 0
	for i := range rigor.Rounds(t) * 200 {
		key := fmt.Sprintf("race/%d", i)
		var five, six error
		var both sync.WaitGroup
		both.Go(func() {
			five = g.Object(holding(5), key).Write(t.Context(), strings.NewReader("five"), s3guard.About{})
		})
		both.Go(func() {
			six = there.Object(holding(6), key).Write(t.Context(), strings.NewReader("six"), s3guard.About{})
		})
		both.Wait()
		if six != nil {
			t.Fatalf("6: got error %v", six)
		}
		if five != nil {
			refused++
			wantStale(t, five, 5, 6)
		}
		holds(t, g, key, "six")
	}
	t.Logf("5 was refused %d times", refused)
}

// A paused holder: it has read the pointer and decided when a newer one writes
// the very same bytes. Their ETag is that of the bytes before, so If-Match alone
// lets the older one pass.
func TestTheSameBytesUnderANewerTokenAreANewVersion(t *testing.T) {
	g, n := newGuard(t)
	const key, same = "frame.png", "the same bytes"
	write(t, g, key, 3, same)
	there := overHere(t, g)
	n.Next("PUT pointer", first(func() { write(t, there, key, 5, same) }, pass))
	err := g.Object(holding(4), key).Write(t.Context(), strings.NewReader(same), s3guard.About{})
	wantStale(t, err, 4, 5)
	if info, err := g.Stat(t.Context(), key); err != nil || info.Tokens[lock] != 5 {
		t.Errorf("got %+v, error %v, want token 5", info, err)
	}
}

// This is what the test before would say of a guard that keeps the token in the
// metadata of the object itself: that it is none.
func TestATokenInTheMetadataIsNotFenced(t *testing.T) {
	g, n := newGuard(t)
	const key, same = "frame.png", "the same bytes"
	put := func(ctx context.Context, c *s3.Client, token fence.Token) error {
		in := &s3.PutObjectInput{Bucket: &g.Bucket, Key: aws.String(key), Body: strings.NewReader(same), Metadata: map[string]string{"token": token.String()}}
		old, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &g.Bucket, Key: aws.String(key)})
		if err == nil {
			if seen, err := fence.Parse(old.Metadata["token"]); err != nil || seen > token {
				return errors.Join(fence.ErrStale, err)
			}
			in.IfMatch = old.ETag
		}
		_, err = c.PutObject(ctx, in)
		return err
	}
	there := overHere(t, g).Client
	if err := put(t.Context(), there, 3); err != nil {
		t.Fatal(err)
	}
	n.Next("PUT pointer", first(func() {
		if err := put(t.Context(), there, 5); err != nil {
			t.Error(err)
		}
	}, pass))
	if err := put(t.Context(), g.Client, 4); err != nil {
		t.Skipf("this S3 has ETags that cover more than the bytes: %v", err)
	}
	if now, err := there.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &g.Bucket, Key: aws.String(key)}); err != nil || now.Metadata["token"] != "4" {
		t.Errorf("got %v, error %v, want token 4 to have gone back from 5", now, err)
	}
}

// A late duplicate of a request must find nothing that looks like what it was
// sent for, also where a tombstone has come back.
func TestARequestThatArrivesLateChangesNothing(t *testing.T) {
	g, n := newGuard(t)
	const key = "film.mp4"
	ctx := t.Context()
	o := g.Object(holding(5), key)
	if err := o.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	var arrive func() int
	n.Next("PUT pointer", func(forward forward) (response, error) {
		arrive = func() int {
			resp, err := forward()
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		return cut(forward)
	})
	// The request that is late is that of this write.
	if err := o.Write(ctx, strings.NewReader("late"), s3guard.About{}); err != nil {
		t.Fatal(err)
	}
	if err := o.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if status := arrive(); status != 412 {
		t.Errorf("the late request got %d, want 412", status)
	}
	if _, err := g.Get(ctx, key); !errors.Is(err, s3guard.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
}
