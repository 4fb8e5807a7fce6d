package sdk

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/pawl-lock/pawl/"
	dynamodb = "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// linked returns the packages that a program which imports packages of ours is
// linked with, and which of them are not of the standard library.
func linked(t *testing.T, packages ...string) (foreign []string) {
	t.Helper()
	args := []string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}
	for _, p := range packages {
		args = append(args, module+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

func TestTheSDKNeedsNothingButTheStandardLibrary(t *testing.T) {
	t.Parallel()
	deps := linked(t, "pkg/lock")
	if !slices.Contains(deps, module+"pkg/lease") {
		t.Fatalf("got %q, which cannot be all", deps)
	}
	for _, p := range deps {
		if !strings.HasPrefix(p, module) {
			t.Errorf("linked with %s", p)
		}
	}
}

func TestAProgramIsLinkedWithTheWayItGoesAndNotWithTheOther(t *testing.T) {
	t.Parallel()
	for _, way := range []struct{ uses, has, hasNot string }{
		{"pkg/lease/httplease/sigv4", "github.com/aws/aws-sdk-go-v2/aws/signer/v4", dynamodb},
		{"pkg/lease/httplease", module + "pkg/lease/httplease", "github.com/aws"},
		{"pkg/lease/httplease", module + "pkg/lease/httplease", module + "pkg/lease/dynamolease"},
		{"pkg/lease/dynamolease", dynamodb, module + "pkg/lease/httplease"},
	} {
		deps := linked(t, "pkg/lock", way.uses)
		if !slices.Contains(deps, way.has) {
			t.Errorf("with %s: not linked with %s", way.uses, way.has)
		}
		for _, p := range deps {
			if p == way.hasNot || strings.HasPrefix(p, way.hasNot+"/") {
				t.Errorf("with %s: linked with %s", way.uses, p)
			}
		}
	}
}
