package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden returns a template as it is deployed by default, with some text in it
// replaced.
func golden(t *testing.T, file string, change ...string) (x template) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(change...).Replace(string(text))
	if len(change) > 0 && changed == string(text) {
		t.Fatalf("%q is not in %s", change, file)
	}
	if err := json.Unmarshal([]byte(changed), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

const (
	tableFile = "testdata/table.json"
	apiFile   = "routes/template.json"
)

func TestAnUpdateThatTakesTheTableAwayIsRefused(t *testing.T) {
	table := golden(t, tableFile)
	for name, c := range map[string]struct {
		next   template
		reason string // "" means that it is fine
	}{
		"nothing":                      {table, ""},
		"another description":          {golden(t, tableFile, "The table with the locks", "It"), ""},
		"a name":                       {golden(t, tableFile, `"KeySchema"`, `"TableName": "locks", "KeySchema"`), "TableName"},
		"another logical id":           {golden(t, tableFile, `"TableCD117FA1": {`, `"Table2": {`), "left behind"},
		"no table":                     {template{}, "left behind"},
		"another type":                 {golden(t, tableFile, "AWS::DynamoDB::GlobalTable", "AWS::DynamoDB::Table"), "left behind"},
		"another key":                  {golden(t, tableFile, `"AttributeName": "pk"`, `"AttributeName": "id"`), "KeySchema"},
		"strong consistency":           {golden(t, tableFile, `"KeySchema"`, `"MultiRegionConsistency": "STRONG", "KeySchema"`), "MultiRegionConsistency"},
		"a witness":                    {golden(t, tableFile, `"KeySchema"`, `"GlobalTableWitnesses": [{"Region": "us-east-2"}], "KeySchema"`), "GlobalTableWitnesses"},
		"one more Region":              {golden(t, tableFile, `"Replicas": [`, `"Replicas": [{"Region": "us-east-2", "DeletionProtectionEnabled": true},`), "Regions"},
		"no protection":                {golden(t, tableFile, `"DeletionProtectionEnabled": true`, `"DeletionProtectionEnabled": false`), "protected from deletion"},
		"deleted with its stack":       {golden(t, tableFile, `"DeletionPolicy": "RetainExceptOnCreate"`, `"DeletionPolicy": "Delete"`), "retained"},
		"replaced without being kept":  {golden(t, tableFile, `"UpdateReplacePolicy": "Retain"`, `"UpdateReplacePolicy": "Delete"`), "retained"},
		"another form of the same":     {golden(t, tableFile, `"Retain"`, `"Retain"  `), ""},
		"a table that has always been": {golden(t, tableFile, `"RetainExceptOnCreate"`, `"Retain"`), ""},
	} {
		got := strings.Join(lost(table, c.next), "\n")
		if (got == "") != (c.reason == "") || !strings.Contains(got, c.reason) {
			t.Errorf("%s: got %q, want %q", name, got, c.reason)
		}
	}
	if got := lost(template{}, table); got != nil {
		t.Errorf("the first deployment is refused: %q", got)
	}
}

// The new table knows of no lease that is in force.
func TestAnAPIThatGoesToAnotherTableIsRefusedUnlessItWaits(t *testing.T) {
	api := golden(t, apiFile)
	elsewhere := func(more string) template {
		return golden(t, apiFile, `"METRICS":`, `"TABLE": "another",`+more+`"METRICS":`, `"TABLE": {`, `"WAS": {`)
	}
	if got := lost(api, elsewhere("")); len(got) != 2 || !strings.Contains(got[0], "pawl:restored-at-ms") {
		t.Errorf("got %q", got)
	}
	if got := lost(api, elsewhere(`"RESTORED_AT_MS": "1790000000123",`)); got != nil {
		t.Errorf("with a quarantine it is refused: %q", got)
	}
	if got := lost(api, golden(t, apiFile, `"MemorySize": 256`, `"MemorySize": 512`)); got != nil {
		t.Errorf("another size is refused: %q", got)
	}
}

// A cloud answers as CloudFormation does.
type cloud struct {
	status, template string // of the stack of the table; a status of "" means that there is none
	policies         []string
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const ns = `xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"`
	w.Header().Set("Content-Type", "text/xml")
	_ = r.ParseForm()
	action, name := r.Form.Get("Action"), r.Form.Get("StackName")
	switch {
	case action == "SetStackPolicy":
		c.policies = append(c.policies, name+" "+r.Form.Get("StackPolicyBody"))
		fmt.Fprintf(w, `<SetStackPolicyResponse %s/>`, ns)
	case c.status == "" || name != "PawlTable":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `<ErrorResponse %s><Error><Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id %s does not exist</Message></Error></ErrorResponse>`, ns, name)
	case action == "DescribeStacks":
		fmt.Fprintf(w, `<DescribeStacksResponse %s><DescribeStacksResult><Stacks><member><StackName>%s</StackName><StackStatus>%s</StackStatus>
			<CreationTime>2026-01-01T00:00:00Z</CreationTime></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, ns, name, c.status)
	case action == "GetTemplate":
		fmt.Fprintf(w, `<GetTemplateResponse %s><GetTemplateResult><TemplateBody><![CDATA[%s]]></TemplateBody></GetTemplateResult></GetTemplateResponse>`, ns, c.template)
	default:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `<ErrorResponse %s><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`, ns)
	}
}

// deployable writes what the CDK would.
func deployable(t *testing.T) (dir, table string) {
	t.Helper()
	dir = t.TempDir()
	for file, from := range map[string]string{"PawlTable.template.json": tableFile, "Pawl.template.json": apiFile} {
		text, err := os.ReadFile(filepath.Join("..", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if from == tableFile {
			table = string(text)
		}
	}
	manifest := `{"artifacts": {
		"PawlTable": {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/us-east-1", "properties": {"templateFile": "PawlTable.template.json"}},
		"Other": {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region",
			"properties": {"templateFile": "Pawl.template.json", "stackName": "Pawl"}},
		"Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}}}}`
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, table
}

func TestWhatIsDeployedIsComparedWithWhatWouldBe(t *testing.T) {
	dir, same := deployable(t)
	named := strings.Replace(same, `"KeySchema"`, `"TableName": "locks", "KeySchema"`, 1)
	for name, c := range map[string]struct {
		status, template, reason string
	}{
		"nothing is deployed":              {"", "", ""},
		"the same":                         {"CREATE_COMPLETE", same, ""},
		"a table with a name":              {"UPDATE_ROLLBACK_COMPLETE", named, "PawlTable: the table TableCD117FA1 has the TableName"},
		"a stack that could not be made":   {"ROLLBACK_COMPLETE", named, ""},
		"a stack that is not made yet":     {"REVIEW_IN_PROGRESS", "", ""},
		"a stack that nobody can describe": {"CREATE_COMPLETE", "Resources: {}", "not one of the CDK's"},
	} {
		server := httptest.NewServer(&cloud{status: c.status, template: c.template})
		credentials(t, server.URL)
		err := run(t.Context(), "check", dir)
		server.Close()
		if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want %q", name, err, c.reason)
		}
	}
}

func credentials(t *testing.T, endpoint string) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_CLOUDFORMATION": endpoint, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
}

func TestTheStackOfTheTableGetsAPolicyThatDeniesItsReplacement(t *testing.T) {
	dir, _ := deployable(t)
	c := new(cloud)
	server := httptest.NewServer(c)
	defer server.Close()
	credentials(t, server.URL)
	if err := run(t.Context(), "protect", dir); err != nil {
		t.Fatal(err)
	}
	if len(c.policies) != 1 || !strings.HasPrefix(c.policies[0], "PawlTable {") {
		t.Fatalf("got %q", c.policies)
	}
	var policy struct {
		Statement []struct {
			Effect    string
			Principal string
			Action    any
			Resource  any
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(c.policies[0], "PawlTable ")), &policy); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range policy.Statement {
		got = append(got, fmt.Sprint(s.Effect, s.Principal, s.Action, s.Resource))
	}
	if want := []string{"Allow*Update:**", "Deny*[Update:Replace Update:Delete] [LogicalResourceId/TableCD117FA1]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatCannotBeReadStopsTheDeployment(t *testing.T) {
	dir, _ := deployable(t)
	server := httptest.NewServer(&cloud{status: "CREATE_COMPLETE"})
	defer server.Close()
	credentials(t, server.URL)
	for _, c := range [][2]string{{"check", t.TempDir()}, {"chekc", dir}} {
		if err := run(t.Context(), c[0], c[1]); err == nil {
			t.Errorf("%v was done", c)
		}
	}
	server.Close()
	if err := run(t.Context(), "check", dir); err == nil {
		t.Error("CloudFormation does not answer, and the deployment goes on")
	}
}
