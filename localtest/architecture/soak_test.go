package architecture

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources are the test files of the repository, by their path from its top.
func sources(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// soaked are the tests that make soak runs, by package.
func soaked(t *testing.T) map[string][]string {
	t.Helper()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(makefile), "\ndefine soak\n")
	list, _, found := strings.Cut(list, "\nendef\n")
	if !found {
		t.Fatal("the Makefile defines no soak")
	}
	tests := make(map[string][]string)
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "ROUNDS" && f[0] != "count" {
			t.Fatalf("the list has %q, want how, a package, and a test", line)
		}
		tests[f[1]] = append(tests[f[1]], f[2])
	}
	return tests
}

// What go test -run does not find, it leaves out without a word.
func TestMakeSoakRunsTestsThatAreThere(t *testing.T) {
	all := sources(t)
	for name, tests := range soaked(t) {
		for _, test := range tests {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(path string) bool {
				return filepath.Dir(path) == name && strings.Contains(all[path], "\nfunc "+test+"(t *testing.T) {\n")
			}) {
				t.Errorf("%s has no %s", name, test)
			}
		}
	}
}

// byRounds is what tests do that is repeated ROUNDS times.
var byRounds = regexp.MustCompile(`rigor\.Rounds\(|"ROUNDS"|\bguardtest\.Hammer\(|\bstories\.Test\(`)

// noSoak are packages whose tests read ROUNDS and are not for make soak.
var noSoak = map[string]string{
	"localtest/rigor":        "tests what ROUNDS means",
	"localtest/architecture": "this package",
	"pkg/guard/guardtest":    "tests the hammer itself, on guards that are wrong",
}

func TestMakeSoakHasEveryTestThatGoesByRounds(t *testing.T) {
	tests := soaked(t)
	for path, text := range sources(t) {
		name := filepath.Dir(path)
		if noSoak[name] != "" {
			continue
		}
		for _, function := range strings.Split(text, "\nfunc ") {
			called, _, _ := strings.Cut(function, "(")
			byItself := strings.HasPrefix(called, "Test") && !slices.Contains(tests[name], called)
			if byRounds.MatchString(function) && (byItself || tests[name] == nil) {
				t.Errorf("%s in %s goes by ROUNDS, and make soak does not run it", called, path)
			}
		}
	}
}
