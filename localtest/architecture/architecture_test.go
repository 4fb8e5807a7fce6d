package architecture

import (
	"bufio"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/pawl-lock/pawl/"

// mayImport says which packages of ours each package may import, its tests
// aside. A package that is missing here fails: decide where it belongs.
var mayImport = map[string]string{
	"pkg/fence":                  "",
	"pkg/fence/grpcfence":        "pkg/fence",
	"pkg/guard/dynamoguard":      "pkg/fence",
	"pkg/guard/guardtest":        "pkg/fence",
	"pkg/guard/redisguard":       "pkg/fence",
	"pkg/guard/s3guard":          "pkg/fence",
	"pkg/guard/sqlguard":         "pkg/fence",
	"pkg/lease":                  "pkg/fence",
	"pkg/lock":                   "pkg/fence pkg/lease",
	"pkg/lease/internal/connect": "",
	"pkg/lease/memlease":         "pkg/lease pkg/lease/protocol",
	"pkg/lease/protocol":         "pkg/fence pkg/lease",
	"pkg/lease/leasetest":        "pkg/fence pkg/lease",
	"pkg/lease/dynamolease":      "pkg/fence pkg/lease pkg/lease/protocol pkg/lease/internal/connect",
	"pkg/lease/httplease":        "pkg/fence pkg/lease pkg/lease/internal/connect",
	"pkg/lease/httplease/sigv4":  "pkg/lease pkg/lease/httplease",
	"pkg/apigw":                  "",
	"functions/metrics":          "pkg/apigw pkg/lease pkg/lease/httplease",
	"functions/settings":         "pkg/lease/protocol",
	"functions/sweeper":          "functions/metrics functions/settings pkg/lease/dynamolease",
	"infra":                      "functions/metrics functions/settings pkg/lease/dynamolease pkg/lease/httplease pkg/lease/protocol",
	"infra/app":                  "infra pkg/lease/protocol",
	"infra/retained":             "functions/settings",
	"infra/routes":               "",
	"functions/api":              "functions/metrics functions/settings pkg/apigw pkg/lease pkg/lease/dynamolease pkg/lease/httplease",
	"localtest":                  "localtest/process localtest/rigor",
	"localtest/architecture":     "",
	"localtest/faultproxy":       "",
	"localtest/gateway":          "localtest/process",
	"localtest/openapi":          "",
	"localtest/rehearsal":        "functions/settings localtest localtest/process pkg/lease pkg/lease/dynamolease pkg/lease/httplease pkg/lease/protocol",
	"localtest/sdk":              "",
	"localtest/stories":          "localtest/process localtest/rigor pkg/fence pkg/lease/httplease pkg/lease/memlease pkg/lock",
	"localtest/stories/ledger":   "localtest localtest/stories pkg/guard/sqlguard",
	"localtest/stories/render":   "localtest localtest/stories pkg/guard/s3guard",
	"localtest/server":           "functions/settings infra/routes localtest localtest/gateway pkg/lease/dynamolease pkg/lease/httplease pkg/lease/memlease",
	"localtest/process":          "",
	"localtest/rigor":            "",
	"localtest/stores":           "localtest localtest/rigor",

	// The model restates the protocol: only its tests know pkg/lease, and hold the
	// two against each other.
	"pkg/lease/model": "pkg/lease/model/explore pkg/lease/model/grants pkg/lease/model/guards " +
		"pkg/lease/model/waiting",
	"pkg/lease/model/explore":             "",
	"pkg/lease/model/explore/exploretest": "pkg/lease/model/explore",
	"pkg/lease/model/grants":              "pkg/lease/model/explore",
	"pkg/lease/model/guards":              "pkg/lease/model/explore",
	"pkg/lease/model/waiting":             "pkg/lease/model/explore",
}

// standardOnly are the packages that anyone can import without a second thought.
var standardOnly = []string{"pkg/fence", "pkg/lease", "pkg/lease/memlease", "pkg/lease/protocol", "pkg/lock", "pkg/guard/redisguard", "pkg/guard/sqlguard"}

// topLevel is all that the repository has at its top, but for dot files.
var topLevel = []string{"LICENSE", "Makefile", "README.md", "functions", "go.mod", "go.sum", "infra", "localtest", "pkg"}

type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
	Deps            []string
}

// packages returns what the go command knows about every package of ours.
var packages = sync.OnceValues(func() (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", module+"...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found := make(map[string]listed)
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		found[strings.TrimPrefix(p.ImportPath, module)] = p
	}
	return found, cmd.Wait()
})

func each(t *testing.T, check func(name string, p listed)) {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < len(mayImport)/2 {
		t.Fatalf("the go command lists only %d packages", len(all))
	}
	for name, p := range all {
		check(name, p)
	}
}

func TestPackagesImportInOneDirection(t *testing.T) {
	each(t, func(name string, p listed) {
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s is not in the map of who may import whom", name)
		}
		for _, i := range p.Imports {
			ours, ok := strings.CutPrefix(i, module)
			if ok && !slices.Contains(strings.Fields(allowed), ours) {
				t.Errorf("%s imports %s, and may import only %q", name, ours, allowed)
			}
		}
	})
}

func TestTheCoreDependsOnTheStandardLibraryOnly(t *testing.T) {
	each(t, func(name string, p listed) {
		if !slices.Contains(standardOnly, name) {
			return
		}
		for _, d := range p.Deps {
			first, _, _ := strings.Cut(d, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(d, module) {
				t.Errorf("%s depends on %s", name, d)
			}
		}
	})
}

func TestEveryPackageHasOneDocComment(t *testing.T) {
	each(t, func(name string, p listed) {
		var docs []string
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc == nil {
				continue
			}
			docs = append(docs, file)
			start := "Package " + f.Name.Name + " "
			if f.Name.Name == "main" {
				start = "Command " + filepath.Base(name) + " "
			}
			if !strings.HasPrefix(f.Doc.Text(), start) {
				t.Errorf("the doc comment of %s does not start with %q", name, start)
			}
		}
		if len(docs) != 1 {
			t.Errorf("%s has %d doc comments (%v), want one", name, len(docs), docs)
		}
	})
}

func TestFilesAreOneIdeaLong(t *testing.T) {
	each(t, func(name string, p listed) {
		for _, file := range p.GoFiles {
			if n := lines(t, filepath.Join(p.Dir, file)); n > 300 {
				t.Errorf("%s/%s has %d lines, want at most 300", name, file, n)
			}
		}
	})
}

func TestTheTopLevelIsWhatWasAgreed(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) && !ignored(name) {
			t.Errorf("%s does not belong at the top level", name)
		}
	}
}

// ignored are what builds leave behind; .gitignore has them.
func ignored(name string) bool { return name == "dist" || name == "cdk.out" }

func lines(t *testing.T, path string) (n int) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		n++
	}
	return n
}
