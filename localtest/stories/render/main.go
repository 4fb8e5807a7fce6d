// Command render tells how the late draft of a paused worker replaces a finished
// film on S3, and how a guard with a pointer object prevents it: make
// story-render.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/stories"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

func main() {
	if err := stories.Main(context.Background(), story, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	bucket   = "films"
	film     = "trailer.mp4"
	finished = "4K, finished"
)

var story = stories.Story{Lock: "studio/trailer", Work: render}

// render publishes a film: worker-1 a draft in 720p, worker-2 the finished one.
func render(ctx context.Context, w stories.Worker, pause func()) error {
	server, err := localtest.StartS3(ctx) // that of S3_ENDPOINT
	if err != nil {
		return err
	}
	client := s3.New(server.Options())
	picture := "720p, draft"
	if w.Name == "worker-2" {
		picture = finished
	}
	guard := &s3guard.Guard{Client: client, Bucket: bucket, Observer: stories.Refused}
	object := guard.Object(w.Held.Holding(), film)
	if w.Guarded {
		if err := object.Claim(ctx); err != nil {
			return err
		}
	}
	w.Log("has rendered %s", picture)
	if err := w.Held.Err(); err != nil {
		return err
	}
	pause() // it has just looked, and all was well

	if w.Guarded {
		err = object.Write(ctx, strings.NewReader(picture), s3guard.About{ContentType: "video/mp4"})
	} else {
		_, err = client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: aws.String(bucket), Key: aws.String(film), Body: strings.NewReader(picture),
		})
	}
	if err == nil {
		w.Log("publishes %s", picture)
	}
	return err
}

func open(ctx context.Context) (*stories.Stage, func() error, error) {
	if err := localtest.Install(ctx, os.Stderr, "s3"); err != nil {
		return nil, nil, err
	}
	server, err := localtest.StartS3(ctx)
	if err != nil {
		return nil, nil, err
	}
	stage, err := stageOn(ctx, server)
	return stage, server.Close, err
}

func stageOn(ctx context.Context, server *localtest.S3) (*stories.Stage, error) {
	client := s3.New(server.Options())
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		return nil, err
	}
	key, err := server.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	return &stories.Stage{
		Story: story,
		Env: []string{
			"S3_ENDPOINT=" + server.Endpoint,
			"AWS_ACCESS_KEY_ID=" + key.AccessKeyID,
			"AWS_SECRET_ACCESS_KEY=" + key.SecretAccessKey,
			"AWS_SESSION_TOKEN=" + key.SessionToken,
		},
		Reset: func(ctx context.Context) error {
			_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(film)})
			return err
		},
		Outcome: func(ctx context.Context) (text string, intact bool, err error) {
			text, err = published(ctx, client)
			if text != finished {
				return fmt.Sprintf("lost update: the film is %q, and what worker-2 published is gone", text), false, err
			}
			return fmt.Sprintf("the film is %q, as worker-2 published it", text), true, err
		},
	}, nil
}

// published is what a viewer gets, of a guarded film or of another.
func published(ctx context.Context, client *s3.Client) (string, error) {
	guard := &s3guard.Guard{Client: client, Bucket: bucket}
	if content, err := guard.Get(ctx, film); err == nil {
		defer content.Body.Close()
		text, err := io.ReadAll(content.Body)
		return string(text), err
	}
	out, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(film)})
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	return string(text), err
}
