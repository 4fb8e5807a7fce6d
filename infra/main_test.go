package infra

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/localtest/rigor"
)

var update = flag.Bool("update", false, "write the golden templates instead of comparing with them")

// code is a directory with something to ship: the templates do not depend on
// what it is.
var code string

func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("JSII_NODE") == "" {
		if rigor.CI() {
			fmt.Println("the CDK needs node, and it is not there")
			os.Exit(1)
		}
		fmt.Println("SKIPPED, all of package infra: the CDK needs node. Install it, or name it in JSII_NODE.")
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer jsii.Close()
	dir, err := os.MkdirTemp("", "pawl-infra-")
	if err == nil {
		defer os.RemoveAll(dir)
		code = filepath.Join(dir, "code")
		if err = os.Mkdir(code, 0o755); err == nil {
			err = os.WriteFile(filepath.Join(code, "bootstrap"), []byte("not a function\n"), 0o755)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

// newApp returns an app that does not validate its templates: that takes
// seconds, and one test does it for all.
func newApp() awscdk.App {
	flags := Flags()
	return awscdk.NewApp(&awscdk.AppProps{
		AnalyticsReporting:              jsii.Bool(false),
		Context:                         &flags,
		BuiltinCloudFormationValidation: jsii.Bool(false),
	})
}

// stacks makes the stack of the table and that of the API, with what change
// changes.
func stacks(app constructs.Construct, change func(*TableStackProps, *APIStackProps)) (table, api awscdk.Stack) {
	t := &TableStackProps{}
	a := &APIStackProps{LockServiceProps: LockServiceProps{Code: code}}
	if change != nil {
		change(t, a)
	}
	table, a.Table = NewTableStack(app, "PawlTable", t)
	api, _ = NewAPIStack(app, "Pawl", a)
	return table, api
}

// sweeping makes the stacks of a table with strong consistency.
func sweeping(app constructs.Construct, change func(*SweeperStackProps)) (table, sweeper awscdk.Stack) {
	t, s := &TableStackProps{}, &SweeperStackProps{SweeperProps: SweeperProps{Code: code}}
	makeStrong(t, new(APIStackProps))
	s.Env = t.Env
	if change != nil {
		change(s)
	}
	table, s.Table = NewTableStack(app, "PawlTable", t)
	return table, NewSweeperStack(app, "PawlSweeper", s)
}

// A template is a synthesized one.
type template map[string]any

// synth returns the templates of the table and the API.
func synth(t testing.TB, change func(*TableStackProps, *APIStackProps)) (table, api template) {
	t.Helper()
	app := newApp()
	tableStack, apiStack := stacks(app, change)
	return read(t, app, tableStack), read(t, app, apiStack)
}

func read(t testing.TB, app awscdk.App, s awscdk.Stack) (x template) {
	t.Helper()
	text, err := json.Marshal(app.Synth(nil).GetStackArtifact(s.ArtifactId()).Template())
	if err == nil {
		err = json.Unmarshal(text, &x)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The default stacks, the API under JWT, and the table with its sweeper.
var (
	defaults = sync.OnceValues(func() (table, api template) { return synth(new(testing.B), nil) })
	underJWT = sync.OnceValue(func() template {
		_, api := synth(new(testing.B), func(_ *TableStackProps, a *APIStackProps) {
			a.JWT = &JWT{Issuer: "https://issuer.example", Audience: []string{"pawl"}}
		})
		return api
	})
	strong = sync.OnceValues(func() (table, sweeper template) {
		app := newApp()
		t, s := sweeping(app, nil)
		return read(new(testing.B), app, t), read(new(testing.B), app, s)
	})
)

func makeStrong(t *TableStackProps, a *APIStackProps) {
	t.Env = &awscdk.Environment{Region: jsii.String("us-east-1")}
	a.Env = t.Env
	t.Consistency, t.Replicas = Strong, []string{"us-east-2", "us-west-2"}
}

// of returns the properties of all resources of a type, by logical id.
func (x template) of(kind string) map[string]props {
	found := make(map[string]props)
	for id, r := range x["Resources"].(map[string]any) {
		if r := r.(map[string]any); r["Type"] == kind {
			p, _ := r["Properties"].(map[string]any)
			found[id] = p
		}
	}
	return found
}

// one returns the only resource of a type.
func (x template) one(t testing.TB, kind string) (id string, p props) {
	t.Helper()
	found := x.of(kind)
	if len(found) != 1 {
		t.Fatalf("there are %d resources of type %s", len(found), kind)
	}
	for id, p = range found {
	}
	return id, p
}

type props map[string]any

// at returns what is in p along a path of names and indexes.
func (p props) at(path ...any) any {
	var here any = map[string]any(p)
	for _, step := range path {
		switch h := here.(type) {
		case map[string]any:
			here = h[fmt.Sprint(step)]
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(h) {
				return nil
			}
			here = h[i]
		default:
			return nil
		}
	}
	return here
}
