package localtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
)

const (
	dockerImage = "amazon/dynamodb-local:2.6.1"

	// dynoxideVersion is the version of the crate dynoxide-rs, the newest that
	// builds and passes the probe; pinned, because an engine that changes under
	// the tests is one more thing to suspect. The program has a number of its
	// own and calls itself 1.5.0. Up to 3.1 the feature cli came by itself.
	dynoxideVersion = "3.2.0"
)

// errNoDynamoDB tells what to provide; an engine that is there and fails is not
// this error.
var errNoDynamoDB = errors.New("no DynamoDB: set DYNAMODB_ENDPOINT to the URL of one, " +
	"or DYNAMODB_LOCAL_HOME to the directory of DynamoDB Local, or start Docker, " +
	"or install dynoxide (go run ./localtest/stores does, if there is cargo)")

func findDynamoDB(ctx context.Context) error {
	if os.Getenv("DYNAMODB_ENDPOINT") != "" {
		return nil
	}
	_, err := findEngine(ctx, "")
	return err
}

// findEngine chooses how to run DynamoDB on this machine.
func findEngine(ctx context.Context, dataDir string) (*engine, error) {
	if home := os.Getenv("DYNAMODB_LOCAL_HOME"); home != "" {
		return javaEngine(home, dataDir)
	}
	docker, noDocker := dockerEngine(ctx, dataDir)
	if noDocker == nil {
		return docker, nil
	}
	path, noDynoxide := dynoxidePath()
	if noDynoxide != nil {
		return nil, fmt.Errorf("%w. Docker: %w. dynoxide: %w", errNoDynamoDB, noDocker, noDynoxide)
	}
	return dynoxideEngine(ctx, path, dataDir)
}

func javaEngine(home, dataDir string) (*engine, error) {
	jar := filepath.Join(home, "DynamoDBLocal.jar")
	if _, err := os.Stat(jar); err != nil {
		return nil, fmt.Errorf("DYNAMODB_LOCAL_HOME=%s: %w", home, err)
	}
	return &engine{
		name: "DynamoDB Local from DYNAMODB_LOCAL_HOME" + where(dataDir),
		wait: 30 * time.Second,
		run: func(port int) (*process.Process, error) {
			args := []string{"-Djava.library.path=" + filepath.Join(home, "DynamoDBLocal_lib"),
				"-jar", jar, "-port", strconv.Itoa(port)}
			return process.Start(exec.Command("java", append(args, storage(dataDir)...)...))
		},
	}, nil
}

// storage is what DynamoDB Local is told about its data. Without -sharedDb, that
// depends on the access key and the Region of the client.
func storage(dataDir string) []string {
	if dataDir == "" {
		return []string{"-sharedDb", "-inMemory"}
	}
	return []string{"-sharedDb", "-dbPath", dataDir}
}

func dockerEngine(ctx context.Context, dataDir string) (*engine, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := process.Run(ctx, exec.Command("docker", "info")); err != nil {
		return nil, err
	}
	args, inside := []string{}, ""
	if dataDir != "" {
		inside = "/data"
		// The image's own user could not write to a directory of ours. The
		// mount is a line of CSV: quotes let a path have commas.
		source := `"source=` + strings.ReplaceAll(dataDir, `"`, `""`) + `"`
		args = []string{"--user", "root", "--mount", "type=bind," + source + ",target=" + inside}
	}
	args = append(args, dockerImage, "-jar", "DynamoDBLocal.jar")
	args = append(args, storage(inside)...)
	return &engine{
		name: dockerImage + " in Docker" + where(dataDir),
		wait: 10 * time.Minute, // it may have to download the image
		run: func(port int) (*process.Process, error) {
			// The container is not a child of ours: killing the client that
			// stays attached to it does not end it, removing it does.
			name := "pawl-dynamodb-" + rand.Text()
			run := []string{"run", "--rm", "--name", name, "--label", "pawl=localtest",
				"--publish", fmt.Sprintf("127.0.0.1:%d:8000", port)}
			return process.Start(exec.Command("docker", append(run, args...)...), "docker", "rm", "--force", name)
		},
	}, nil
}

// dynoxide is built for tests, not for users. Its own profile, which is for a small
// file, takes 237 s of CPU to compile and these settings 143; 64 callers get as much
// done with either, and the tests of dynamolease take 4 s of the engine's CPU or 5.
// Without any optimization it compiles in 104 s and then takes 14.
var dynoxide = tool{"dynoxide-" + dynoxideVersion, func(ctx context.Context, dir string) error {
	_, err := process.Run(ctx, exec.Command("cargo", "install", "dynoxide-rs", "--version", "="+dynoxideVersion,
		"--locked", "--no-default-features", "--features", "native-sqlite,http-server,cli",
		"--config", "profile.release.opt-level=1", "--config", `profile.release.lto="off"`,
		"--config", "profile.release.codegen-units=16", "--root", dir))
	return err
}}

func dynoxidePath() (string, error) {
	if path, err := exec.LookPath("dynoxide"); err == nil {
		return path, nil
	}
	return dynoxide.path("bin", "dynoxide")
}

func dynoxideEngine(ctx context.Context, path, dataDir string) (*engine, error) {
	version, err := process.Run(ctx, exec.Command(path, "--version"))
	if err != nil {
		return nil, err
	}
	var data []string
	if dataDir != "" {
		data = []string{"--db-path", filepath.Join(dataDir, "dynoxide.db")}
	}
	return &engine{
		name: version + where(dataDir),
		wait: 30 * time.Second,
		run: func(port int) (*process.Process, error) {
			args := append([]string{"--host", "127.0.0.1", "--port", strconv.Itoa(port)}, data...)
			return process.Start(exec.Command(path, args...))
		},
	}, nil
}

func where(dataDir string) string {
	if dataDir == "" {
		return " (in memory)"
	}
	return " (in " + dataDir + ")"
}
