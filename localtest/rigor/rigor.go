// Package rigor says how hard tests try: how often they repeat what depends on
// chance (ROUNDS), and whether they may leave something out (CI). Both variables
// have the meaning that is written here, and no other.
//
// It cannot make a test that is left out be seen: the go command prints that with
// -v only. Under CI nothing is left out.
package rigor

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Rounds is how many times more than usual a test repeats what depends on chance:
// the number in ROUNDS, or 1. Anything else in ROUNDS fails the test.
func Rounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv("ROUNDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("ROUNDS=%s is not a number of at least 1", text)
	}
	return n
}

// CI reports whether nothing may be left out: CI is set, and not to a word for
// false.
func CI() bool {
	text := os.Getenv("CI")
	ci, err := strconv.ParseBool(text)
	return ci || err != nil && text != ""
}

// Lacking ends a test that lacks something; missing says what to provide. Under
// CI that is a failure.
func Lacking(t testing.TB, missing error) {
	t.Helper()
	if CI() {
		t.Fatal(missing)
	}
	t.Skipf("SKIPPED: %v", missing)
}

// Program returns the path of a program that a test needs and nobody installs.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Lacking(t, err)
	}
	return path
}
