package infra

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

// What is shipped can be compared with what was tested, if the same source makes
// the same bytes wherever it lies.
func TestTwoBuildsOfTheFunctionAreTheSameBytes(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	build := regexp.MustCompile(`(?m)^LAMBDA_BUILD := (.*)$`).FindSubmatch(makefile)
	if build == nil {
		t.Fatal("the Makefile does not say how the function is built")
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, part := range []string{"functions", "pkg"} {
		if err := os.CopyFS(filepath.Join(elsewhere, part), os.DirFS("../"+part)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile("../" + file)
		if err == nil {
			err = os.WriteFile(filepath.Join(elsewhere, file), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var hashes [2][sha256.Size]byte
	for i, dir := range []string{"..", elsewhere} {
		out := filepath.Join(t.TempDir(), "bootstrap")
		cmd := exec.CommandContext(t.Context(), "sh", "-c", string(build[1])+` -o "$OUT" ./functions/api`)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "OUT="+out, "GOARCH="+runtime.GOARCH, "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build in %s: %v\n%s", dir, err, text)
		}
		binary, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		hashes[i] = sha256.Sum256(binary)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("got %x and %x", hashes[0], hashes[1])
	}
}
