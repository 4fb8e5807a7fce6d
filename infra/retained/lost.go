package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-lock/pawl/functions/settings"
)

// A template is what of CloudFormation's matters here.
type template struct {
	Resources map[string]resource
}

type resource struct {
	Type                                string
	DeletionPolicy, UpdateReplacePolicy string
	Properties                          map[string]json.RawMessage
}

func (r resource) isTable() bool {
	return r.Type == "AWS::DynamoDB::GlobalTable" || r.Type == "AWS::DynamoDB::Table"
}

// tables returns the logical ids of the tables.
func (t template) tables() (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if t.Resources[id].isTable() {
			ids = append(ids, id)
		}
	}
	return ids
}

// fixed are the properties of a table that cannot change: CloudFormation makes
// another table, or DynamoDB refuses it for one that has items.
var fixed = []string{
	"TableName", "KeySchema", "AttributeDefinitions", "LocalSecondaryIndexes", "MultiRegionConsistency", "GlobalTableWitnesses",
}

// lost returns for which reasons an update from one template to another would
// take the table from the locks.
func lost(deployed, next template) (reasons []string) {
	for _, id := range deployed.tables() {
		reasons = append(reasons, replaced(id, deployed.Resources[id], next.Resources[id])...)
	}
	for _, id := range slices.Sorted(maps.Keys(deployed.Resources)) {
		was, is := deployed.Resources[id].variables(), next.Resources[id].variables()
		_, restored := is[settings.RestoredAt]
		if was == nil || is == nil || restored || same(was[settings.Table], is[settings.Table]) {
			continue
		}
		reasons = append(reasons, fmt.Sprintf("the function %s would go from the table %s to %s, which knows none of the "+
			"leases in force: say when the other was cut off, in pawl:restored-at-ms and pawl:quarantine-end-ms",
			id, was[settings.Table], is[settings.Table]))
	}
	return reasons
}

func replaced(id string, was, is resource) (reasons []string) {
	add := func(format string, args ...any) {
		reasons = append(reasons, fmt.Sprintf("the table %s "+format, append([]any{id}, args...)...))
	}
	if is.Type != was.Type {
		add("is %s, and would be %q: it would be left behind, and an empty one take its place", was.Type, is.Type)
		return reasons
	}
	for _, name := range fixed {
		if !same(was.Properties[name], is.Properties[name]) {
			add("has the %s %s, and would get %s: that makes another table, or is refused by AWS",
				name, shown(was.Properties[name]), shown(is.Properties[name]))
		}
	}
	before, after := was.replicas(), is.replicas()
	if had, has := slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)); !slices.Equal(had, has) {
		add("is in the Regions %q, and would be in %q: under strong consistency they cannot change", had, has)
	}
	for region, protected := range after {
		if !protected {
			add("would not be protected from deletion in %s", region)
		}
	}
	if !slices.Contains([]string{"Retain", "RetainExceptOnCreate"}, is.DeletionPolicy) || is.UpdateReplacePolicy != "Retain" {
		add("would not be retained: its DeletionPolicy would be %q, its UpdateReplacePolicy %q",
			is.DeletionPolicy, is.UpdateReplacePolicy)
	}
	return reasons
}

// replicas returns the Regions of a table, as the template writes them, and
// whether its copy there is protected from deletion.
func (r resource) replicas() map[string]bool {
	var list []struct {
		Region                    json.RawMessage
		DeletionProtectionEnabled bool
	}
	_ = json.Unmarshal(r.Properties["Replicas"], &list) // one that is computed has no copies to compare
	all := make(map[string]bool)
	for _, one := range list {
		all[shown(one.Region)] = one.DeletionProtectionEnabled
	}
	return all
}

// variables returns the environment of a function of ours, or nil.
func (r resource) variables() map[string]json.RawMessage {
	var e struct{ Variables map[string]json.RawMessage }
	if r.Type != "AWS::Lambda::Function" || json.Unmarshal(r.Properties["Environment"], &e) != nil ||
		e.Variables[settings.Table] == nil {
		return nil
	}
	return e.Variables
}

// same compares values and not how they are written.
func same(a, b json.RawMessage) bool { return shown(a) == shown(b) }

func shown(v json.RawMessage) string {
	if v == nil {
		return "none"
	}
	var value any
	if json.Unmarshal(v, &value) != nil {
		return string(v)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // it was JSON
	return string(bytes.TrimSpace(b.Bytes()))
}
