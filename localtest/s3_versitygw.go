package localtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pawl-lock/pawl/localtest/process"
)

// versitygwVersion is pinned: of this one it is known that If-Match and
// If-None-Match let exactly one of many writers win.
const versitygwVersion = "v1.8.0"

var versitygw = goTool("github.com/versity/versitygw/cmd/versitygw", versitygwVersion)

// startVersitygw runs versitygw on a port of pick.
func startVersitygw(ctx context.Context, path string, pick func() (int, error)) (*S3, error) {
	return onFreePort(pick, func(port int) (*S3, error) {
		s, err := runVersitygw(ctx, path, port, false)
		if err != nil && strings.Contains(err.Error(), "xattr") {
			return runVersitygw(ctx, path, port, true) // temporary files are where files have no attributes
		}
		return s, err
	})
}

func runVersitygw(ctx context.Context, path string, port int, sidecar bool) (*S3, error) {
	dir, err := os.MkdirTemp("", "pawl-s3-")
	if err != nil {
		return nil, err
	}
	objects, attributes := filepath.Join(dir, "objects"), filepath.Join(dir, "attributes")
	for _, d := range []string{objects, attributes} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	// Only this server has the secret: no other takes it for its own.
	secret := aws.Credentials{AccessKeyID: "pawl", SecretAccessKey: rand.Text()}
	args := []string{"--port", "127.0.0.1:" + strconv.Itoa(port), "--quiet", "--keep-alive",
		"--access", secret.AccessKeyID, "--secret", secret.SecretAccessKey, "posix"}
	if sidecar {
		args = append(args, "--sidecar", attributes)
	}
	p, err := process.Start(exec.Command(path, append(args, objects)...), "rm", "-rf", dir)
	if err != nil {
		return nil, err
	}
	s := &S3{
		Endpoint:    fmt.Sprintf("http://127.0.0.1:%d", port),
		Name:        "versitygw " + versitygwVersion,
		region:      "us-east-1",
		credentials: secret,
		stop:        sync.OnceValue(p.Stop),
	}
	waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := p.Ready(waiting, s.answers); err != nil {
		_ = p.Stop() // err says why
		return nil, fmt.Errorf("versitygw: %w", err)
	}
	return s, nil
}
