package infra

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/infra/routes"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// A change of what is deployed must be seen in a review. The golden template of
// the API is also what the local gateway takes its routes from.
func TestTheDefaultStacksAreAsCommitted(t *testing.T) {
	table, api := defaults()
	for path, x := range map[string]template{"testdata/table.json": table, "routes/template.json": api} {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		var masked map[string]any
		if err := json.Unmarshal(text, &masked); err != nil {
			t.Fatal(err)
		}
		mask(masked)
		var got bytes.Buffer
		e := json.NewEncoder(&got)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := e.Encode(masked); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("the template is not %s. If it should be: go test ./infra -run AsCommitted -update\n%s", path, difference(string(want), got.String()))
		}
	}
}

// mask hides the hashes of what the functions consist of.
func mask(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, one := range v {
			if name == "S3Key" {
				v[name] = "HASH.zip"
			}
			mask(one)
		}
	case []any:
		for _, one := range v {
			mask(one)
		}
	}
}

// difference shows where two texts part.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "committed: " + strings.Join(w[i:min(i+5, len(w))], "\n") + "\nis: " + strings.Join(g[i:min(i+5, len(g))], "\n")
		}
	}
	return "one is longer"
}

func TestTheLocalGatewayHasTheRoutesThatAreDeployed(t *testing.T) {
	for name, x := range map[string]template{"IAM": func() template { _, api := defaults(); return api }(), "JWT": underJWT()} {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		got, err := routes.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		deployed, err := routes.Deployed()
		if err != nil {
			t.Fatal(err)
		}
		if all, _ := httplease.Routes(); len(got) != len(all) || len(got) != len(deployed) {
			t.Fatalf("%s: %d routes, of %d; committed %d", name, len(got), len(all), len(deployed))
		}
		for i := range got {
			if got[i] != deployed[i] {
				t.Errorf("%s: %+v, committed %+v", name, got[i], deployed[i])
			}
		}
	}
}
