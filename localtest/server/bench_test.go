package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

// BenchmarkColdStart starts the function under AWS's emulator and makes its first
// call, which goes to DynamoDB. It reports the median of how long that takes, of
// the memory that the function has used by then, and the size of the arm64
// binary. The emulator itself takes a part of the time; the same for a function
// that does nothing is the yardstick.
func BenchmarkColdStart(b *testing.B) {
	bootstrap, env := prepare(b)
	empty := compile(b, `package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context, any) (map[string]any, error) { return map[string]any{"statusCode": 200}, nil })
}
`)
	var ours, yardstick []time.Duration
	var memory []int
	for i := 0; b.Loop(); i++ {
		// In turn, so that a machine that changes its speed changes both.
		d, m := coldStart(b, bootstrap, env, fmt.Sprintf(`{"lock":"cold/%d","ttl_ms":60000}`, i), http.StatusCreated)
		ours, memory = append(ours, d), append(memory, m)
		d, _ = coldStart(b, empty, env, "{}", http.StatusOK)
		yardstick = append(yardstick, d)
	}
	b.ReportMetric(0, "ns/op") // setting up is most of it
	b.ReportMetric(median(ours).Seconds()*1000, "ms-p50")
	b.ReportMetric(median(yardstick).Seconds()*1000, "ms-p50-empty")
	b.ReportMetric(float64(median(memory))/1024, "MB-p50")
	b.ReportMetric(arm64Size(b), "MB-arm64")
}

func coldStart(b *testing.B, bootstrap string, env []string, body string, status int) (took time.Duration, kilobytes int) {
	e := emulate(b, bootstrap, env)
	started := time.Now()
	if a := e.call("POST", "/v1/bench/acquire", "", body); a.StatusCode != status {
		b.Fatalf("got %+v\n%s", a, e.log)
	}
	took = time.Since(started)
	kilobytes = peakMemory(bootstrap)
	e.stop()
	return took, kilobytes
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is what the process of a program has used at most, in KiB, or 0
// where there is no /proc.
func peakMemory(program string) int {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		if exe, err := os.Readlink(p + "/exe"); err != nil || exe != program {
			continue
		}
		status, _ := os.ReadFile(p + "/status")
		if m := peak.FindSubmatch(status); m != nil {
			n, _ := strconv.Atoi(string(m[1]))
			return n
		}
	}
	return 0
}

// compile builds a program as the function is built.
func compile(b *testing.B, source string) string {
	// Inside of the module, for its dependencies; where the go command does not look.
	dir, err := os.MkdirTemp(".", "_bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		b.Fatal(err)
	}
	out := filepath.Join(b.TempDir(), "bootstrap")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", out, file)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	return out
}

func arm64Size(b *testing.B) float64 {
	b.Setenv("GOOS", "linux")
	b.Setenv("GOARCH", "arm64")
	var s service
	defer func() { _ = s.close() }() // a temporary directory
	bootstrap, err := s.build(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(bootstrap)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Size()) / 1e6
}

func median[T time.Duration | int](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}
