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

// A rule says which packages of ours a package may import, its tests aside, and
// why those and no others.
type rule struct{ imports, why string }

// mayImport has a rule for every package. One that is missing here fails: decide
// where it belongs.
var mayImport = map[string]rule{
	"pkg/fence":             {"", "storage imports it, and shall not import a lock service"},
	"pkg/fence/grpcfence":   {"pkg/fence", "it carries what fence defines, and is apart because gRPC is heavy"},
	"pkg/guard/dynamoguard": {"pkg/fence", "a guard knows the token, and not who granted it"},
	"pkg/guard/guardtest":   {"pkg/fence", "it tests guards, which know only that"},
	"pkg/guard/redisguard":  {"pkg/fence", "a guard knows the token, and not who granted it"},
	"pkg/guard/s3guard":     {"pkg/fence", "a guard knows the token, and not who granted it"},
	"pkg/guard/sqlguard":    {"pkg/fence", "a guard knows the token, and not who granted it"},
	"pkg/lease":             {"pkg/fence", "a lease has a token; the domain knows no transport and no database"},
	"pkg/lock":              {"pkg/fence pkg/lease", "callers choose the way to the service by a field, so it is linked with neither"},
	"pkg/lease/leasetest":   {"pkg/fence pkg/lease", "it tests any service, so it knows none"},
	"pkg/lease/protocol":    {"pkg/fence pkg/lease", "those who write a store import it, and callers do not"},
	"pkg/lease/memlease":    {"pkg/lease pkg/lease/protocol", "a store is the protocol, and somewhere to keep records"},
	"pkg/lease/dynamolease": {"pkg/fence pkg/lease pkg/lease/protocol pkg/lease/internal/connect",
		"a store is the protocol, and somewhere to keep records"},
	"pkg/lease/httplease": {"pkg/fence pkg/lease pkg/lease/internal/connect", "a way to a service, which knows no store"},
	"pkg/lease/httplease/sigv4": {"pkg/lease pkg/lease/httplease",
		"apart, so that those who send bearer tokens link nothing of AWS"},
	"pkg/lease/internal/connect": {"", "it judges errors of any client"},
	"pkg/apigw":                  {"", "it serves any http.Handler"},
	"pkg/cmd/pawl": {"pkg/cmd/pawl/internal/guardian pkg/lease pkg/lease/httplease pkg/lock",
		"wiring: it uses the SDK as any program does"},
	"pkg/cmd/pawl/internal/guardian": {"", "it ends any command in time, and knows no lock"},

	"functions/metrics":  {"pkg/apigw pkg/lease pkg/lease/httplease", "it counts the outcomes that httplease names"},
	"functions/settings": {"pkg/lease/protocol", "the environment of a function holds the rules of leases"},
	"functions/sweeper":  {"functions/metrics functions/settings pkg/lease/dynamolease", "wiring: it sweeps a table, and serves nobody"},
	"functions/api": {"functions/metrics functions/settings pkg/apigw pkg/lease pkg/lease/dynamolease pkg/lease/httplease",
		"wiring: the handler on the table, behind API Gateway"},

	"infra": {"functions/metrics functions/settings pkg/lease/dynamolease pkg/lease/httplease pkg/lease/protocol",
		"what is deployed has the names that the code has: of metrics, variables, attributes and calls"},
	"infra/app":      {"infra pkg/lease/protocol", "parameters become stacks and the rules of leases"},
	"infra/retained": {"functions/settings", "it compares templates, by the environment that is in them"},
	"infra/routes":   {"", "the local server reads the deployed routes, and shall not be linked with the CDK"},

	"localtest":              {"localtest/process localtest/rigor", "stores for tests of every package: it imports none of them"},
	"localtest/architecture": {"", "it reads sources"},
	"localtest/faultproxy":   {"", "it breaks any HTTP"},
	"localtest/gateway":      {"localtest/process", "an imitation that imports the service would share its mistakes"},
	"localtest/openapi":      {"", "it has tests only"},
	"localtest/process":      {"", "it runs any program"},
	"localtest/rehearsal": {"functions/settings localtest localtest/process pkg/lease pkg/lease/dynamolease " +
		"pkg/lease/httplease pkg/lease/protocol",
		"it restores a table, and looks at it as an operator and as a caller"},
	"localtest/rigor":  {"", "tests of every package import it"},
	"localtest/sdk":    {"", "it has tests only"},
	"localtest/stores": {"localtest localtest/rigor", "it installs what localtest finds"},
	"localtest/stories": {"localtest/process localtest/rigor pkg/fence pkg/lease/httplease pkg/lease/memlease pkg/lock",
		"its workers use the SDK as a program does"},
	"localtest/stories/ledger": {"localtest localtest/stories pkg/guard/sqlguard", "a story is about one guard"},
	"localtest/stories/render": {"localtest localtest/stories pkg/guard/s3guard", "a story is about one guard"},
	"localtest/server": {
		"functions/settings infra/routes localtest localtest/gateway pkg/lease/dynamolease pkg/lease/httplease pkg/lease/memlease",
		"the whole service on one machine, with the routes that are deployed"},

	"pkg/lease/model": {"pkg/lease/model/explore pkg/lease/model/grants pkg/lease/model/guards pkg/lease/model/waiting",
		"the model restates the protocol: only its tests know pkg/lease, and hold the two against each other"},
	"pkg/lease/model/explore":             {"", "it searches any model"},
	"pkg/lease/model/explore/exploretest": {"pkg/lease/model/explore", "it runs the cases of any model"},
	"pkg/lease/model/grants":              {"pkg/lease/model/explore", "a model knows its search, and not the code"},
	"pkg/lease/model/guards":              {"pkg/lease/model/explore", "a model knows its search, and not the code"},
	"pkg/lease/model/waiting":             {"pkg/lease/model/explore", "a model knows its search, and not the code"},
}

// standardOnly are the packages that depend on the standard library only, each with
// who would have to carry more.
var standardOnly = map[string]string{
	"pkg/fence":            "storage of any kind",
	"pkg/lease":            "whoever talks to the service, by any way",
	"pkg/lease/memlease":   "tests of programs that take locks",
	"pkg/lease/protocol":   "whoever writes a store",
	"pkg/lock":             "every program that takes a lock",
	"pkg/guard/redisguard": "programs that have a client for Redis: it is an interface here",
	"pkg/guard/sqlguard":   "programs that have a driver: database/sql is enough here",
}

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
		r, known := mayImport[name]
		if !known {
			t.Errorf("%s is not in the map of who may import whom", name)
			return
		}
		for _, i := range p.Imports {
			ours, ok := strings.CutPrefix(i, module)
			if ok && !slices.Contains(strings.Fields(r.imports), ours) {
				t.Errorf("%s imports %s, and may import only %q: %s", name, ours, r.imports, r.why)
			}
		}
	})
}

func TestEveryRuleHasAReasonAndIsNeeded(t *testing.T) {
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range mayImport {
		p, there := all[name]
		if !there {
			t.Errorf("%s has a rule, and is not there", name)
			continue
		}
		if r.why == "" {
			t.Errorf("%s has a rule without a reason", name)
		}
		for _, allowed := range strings.Fields(r.imports) {
			if !slices.Contains(p.Imports, module+allowed) {
				t.Errorf("%s may import %s, and does not", name, allowed)
			}
		}
	}
	for name, who := range standardOnly {
		if _, there := all[name]; !there || who == "" {
			t.Errorf("%s depends on nothing, for %q", name, who)
		}
	}
}

func TestTheCoreDependsOnTheStandardLibraryOnly(t *testing.T) {
	each(t, func(name string, p listed) {
		if standardOnly[name] == "" {
			return
		}
		for _, d := range p.Deps {
			first, _, _ := strings.Cut(d, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(d, module) {
				t.Errorf("%s depends on %s, at the cost of %s", name, d, standardOnly[name])
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
