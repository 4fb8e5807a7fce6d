package infra

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In a clean clone there is no dist, which the app needs whatever it is to do.
func TestEveryTargetThatStartsTheCDKBuildsTheFunctionsFirst(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), makefile, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"bootstrap", "diff", "deploy", "destroy"} {
		out, err := exec.CommandContext(t.Context(), "make", "-n", "-C", dir, target).CombinedOutput()
		before, after, found := strings.Cut(string(out), "aws-cdk@2.")
		if err != nil || !found || !strings.Contains(before, "dist/api/bootstrap") || !strings.Contains(before, "dist/sweeper/bootstrap") {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
		if !strings.Contains(after, target) && target != "deploy" {
			t.Errorf("make %s does something else: %s", target, after)
		}
	}
}

// Without an account to ask there is nothing to compare with.
func TestNothingIsDeployedThatCouldNotBeChecked(t *testing.T) {
	dir := t.TempDir()
	record, cdk := filepath.Join(dir, "record"), filepath.Join(dir, "cdk")
	if err := os.WriteFile(cdk, []byte("#!/bin/sh\necho \"$@\" >> "+record+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "-s", "-C", "..", "-o", "build", "deploy", "CDK="+cdk, "ASSEMBLY="+filepath.Join(dir, "none"))
	out, err := cmd.CombinedOutput()
	calls, _ := os.ReadFile(record)
	if err == nil || !strings.HasPrefix(string(calls), "synth") || strings.Contains(string(calls), "deploy") {
		t.Errorf("got %v, with the calls %q\n%s", err, calls, out)
	}
}
