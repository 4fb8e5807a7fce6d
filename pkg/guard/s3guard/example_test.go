package s3guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

// A job renders a film while it holds the lock studio/films/42, whose grant has
// the token 7, and publishes the file.
func Example() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	films := &s3guard.Guard{
		Client:   s3.NewFromConfig(cfg),
		Bucket:   os.Getenv("FILMS_BUCKET"),
		Observer: fence.LogRefusals(slog.Default()),
	}
	h := fence.Holding{Lock: "studio/films/42", Token: 7} // lock.Held.Holding

	// From here on, a job that held the lock before cannot publish any more.
	if err := films.Claim(ctx, h, "films/42.mp4"); err != nil {
		log.Fatal(err)
	}
	older := fence.Holding{Lock: "studio/films/42", Token: 6}
	for _, h := range []fence.Holding{h, older} {
		rendered := strings.NewReader("all frames") // an *os.File, a pipe
		err = films.Write(ctx, h, "films/42.mp4", rendered, s3guard.About{ContentType: "video/mp4"})
		switch {
		case errors.Is(err, fence.ErrStale):
			fmt.Println(h.Token, "stops: another job has taken over")
		case errors.Is(err, fence.ErrNotApplied):
			fmt.Println("nothing was published:", err)
		case err != nil:
			fmt.Println("it may be published, write it again to know:", err)
		default:
			fmt.Println("published by", h.Token)
		}
	}
	// published by 7
	// 6 stops: another job has taken over
}

// Whoever reads needs no lock and no token.
func ExampleGuard_Get() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	films := &s3guard.Guard{Client: s3.NewFromConfig(cfg), Bucket: os.Getenv("FILMS_BUCKET")}
	film, err := films.Get(ctx, "films/42.mp4")
	if errors.Is(err, s3guard.ErrNotFound) {
		fmt.Println("not rendered yet")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer film.Body.Close()
	b, err := io.ReadAll(film.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s of %d bytes: %s\n", film.ContentType, film.Size, b)
}

// A job that runs once a day removes what replaced and refused files left.
func ExampleGuard_Sweep() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	films := &s3guard.Guard{Client: s3.NewFromConfig(cfg), Bucket: os.Getenv("FILMS_BUCKET")}
	n, err := films.Sweep(ctx, "films/", time.Now().AddDate(0, 0, -1))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("deleted", n)
}

// Examples cannot skip where there is no S3, so a test runs them.
func TestExamplesRun(t *testing.T) {
	server := localtest.S3ForTest(t)
	o := server.Options()
	keys, err := o.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.Endpoint, "AWS_REGION": o.Region, "FILMS_BUCKET": server.BucketForTest(t),
		"AWS_ACCESS_KEY_ID": keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY": keys.SecretAccessKey, "AWS_SESSION_TOKEN": keys.SessionToken,
	} {
		t.Setenv(name, value)
	}
	for _, e := range []struct {
		run  func()
		want string
	}{
		{ExampleGuard_Get, "not rendered yet\n"},
		{Example, "published by 7\n6 stops: another job has taken over\n"},
		{ExampleGuard_Get, "video/mp4 of 10 bytes: all frames\n"},
		{ExampleGuard_Sweep, "deleted 0\n"},
	} {
		if got := printed(t, e.run); got != e.want {
			t.Errorf("printed %q, want %q", got, e.want)
		}
	}
}

func printed(t *testing.T, run func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	run()
	os.Stdout = stdout
	_ = w.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
