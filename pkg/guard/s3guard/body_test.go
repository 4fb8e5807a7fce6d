package s3guard_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/s3guard"
)

// A tape is a body of some length that cannot be rewound, as a pipe is.
type tape struct {
	io.Reader
	read int
}

func newTape(b []byte) *tape { return &tape{Reader: bytes.NewReader(b)} }

func (t *tape) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	t.read += n
	return n, err
}

const part = 5 << 20

func TestALongBodyGoesInParts(t *testing.T) {
	g, n := newGuard(t)
	g.PartSize = part
	for name, size := range map[string]int{
		"none": 0, "short": 1, "almost a part": part - 1, "one part": part, "one more byte": part + 1, "two and a bit": 2*part + 1,
	} {
		body := noise(size)
		n.Sent()
		if err := g.Object(holding(5), name).Write(t.Context(), newTape(body), s3guard.About{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parts := 0
		for _, s := range n.Sent() {
			if strings.Contains(s.url, "partNumber=") {
				parts++
			}
		}
		if want := (size + part - 1) / part; size >= part && parts != want || size < part && parts != 0 {
			t.Errorf("%s: sent in %d parts of %d bytes", name, parts, size)
		}
		holds(t, g, name, string(body))
		if info, err := g.Stat(t.Context(), name); err != nil || info.Size != int64(size) || info.ETag == "" {
			t.Errorf("%s: got %+v, error %v, want size %d", name, info, err, size)
		}
	}
}

func TestABodyIsNotReadForATokenThatIsKnownToBeStale(t *testing.T) {
	g, _ := newGuard(t)
	write(t, g, "film.mp4", 6, "six")
	body := newTape(noise(part))
	wantStale(t, g.Object(holding(5), "film.mp4").Write(t.Context(), body, s3guard.About{}), 5, 6)
	if body.read != 0 {
		t.Errorf("read %d bytes", body.read)
	}
}

func TestALongBodyThatTurnsOutStaleLeavesNothingToSee(t *testing.T) {
	g, n := newGuard(t)
	g.PartSize = part
	there := overHere(t, g)
	o := g.Object(holding(5), "film.mp4")
	if err := o.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Next("POST data", first(func() { write(t, there, "film.mp4", 6, "six") }, pass))
	wantStale(t, o.Write(t.Context(), newTape(noise(2*part+1)), s3guard.About{}), 5, 6)
	again := newTape(noise(part))
	wantStale(t, o.Write(t.Context(), again, s3guard.About{}), 5, 6)
	if again.read != 0 {
		t.Errorf("read %d bytes after it was refused", again.read)
	}
	holds(t, g, "film.mp4", "six")
	visible := slices.DeleteFunc(keys(t, g, ""), func(key string) bool { return strings.HasPrefix(key, ".pawl/") })
	if !slices.Equal(visible, []string{"film.mp4"}) {
		t.Errorf("the bucket has %q", visible)
	}
	if n, err := g.Sweep(t.Context(), "", all()); n != 1 || err != nil {
		t.Errorf("swept %d, error %v, want 1", n, err)
	}
	holds(t, g, "film.mp4", "six")
}

func TestAnUploadThatFailsLeavesNoParts(t *testing.T) {
	broken := errors.New("the renderer crashed")
	type attempt struct {
		body  io.Reader
		fault fault
		why   error
	}
	for name, begin := range map[string]func(cancel func()) attempt{
		"S3 fails": func(func()) attempt {
			return attempt{newTape(noise(2*part + 1)), say(500, "InternalError"), nil}
		},
		"the body fails at once": func(func()) attempt {
			return attempt{iotest.ErrReader(broken), pass, broken}
		},
		"the body fails after parts": func(func()) attempt {
			return attempt{io.MultiReader(newTape(noise(part+1)), iotest.ErrReader(broken)), pass, broken}
		},
		"the caller gives up": func(cancel func()) attempt { // one part: S3 may keep one that is still under way
			return attempt{newTape(noise(part)), after(first(cancel, cut)), context.Canceled}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := newGuard(t)
			g.PartSize = part
			write(t, g, "film.mp4", 4, "four")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a := begin(cancel)
			n.Every("PUT data", a.fault)
			err := g.Object(holding(5), "film.mp4").Write(ctx, a.body, s3guard.About{})
			if !errors.Is(err, fence.ErrNotApplied) || a.why != nil && !errors.Is(err, a.why) {
				t.Errorf("got error %v, want ErrNotApplied and %v", err, a.why)
			}
			holds(t, g, "film.mp4", "four")
			out, err := g.Client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &g.Bucket})
			if err != nil || len(out.Uploads) > 0 {
				t.Errorf("left %v, error %v", out.Uploads, err)
			}
		})
	}
}
