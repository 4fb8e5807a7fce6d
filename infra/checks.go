package infra

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"

	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// eventual is why there are no global tables with eventual consistency.
const eventual = "a global table with eventual consistency accepts conditional writes of two Regions at once, " +
	"so that both are granted the same lock; use one Region, or strong consistency"

// regionSets are the Regions that can keep a table with strong consistency
// together.
var regionSets = [][]string{
	{"us-east-1", "us-east-2", "us-west-2"},
	{"eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1"},
	{"ap-northeast-1", "ap-northeast-2", "ap-northeast-3"},
}

// validate checks the configuration of a table in the Region home, which is ""
// if it is not known yet.
func (p *TableProps) validate(home string) error {
	var e errorsIn
	e.matches("Region", home, regionName, "the name of a Region, as eu-west-1")
	e.matches("Name", p.Name, tableName, "3 to 255 letters, digits, and _ . -")
	for _, region := range slices.Sorted(maps.Keys(p.ReplicaKeyARNs)) {
		e.arn("ReplicaKeyARNs", p.ReplicaKeyARNs[region], key, region)
	}
	switch {
	case p.Consistency == Eventual:
		e.add(wrong("Consistency", eventual))
	case p.Consistency != "" && p.Consistency != Strong:
		e.add(wrong("Consistency", "is %q, want %q or none", p.Consistency, Strong))
	case p.AWSManagedKey && p.Key != nil:
		e.add(wrong("AWSManagedKey", "the table has a customer key and the AWS managed one: choose"))
	case p.Key == nil && len(p.ReplicaKeyARNs) > 0:
		e.add(wrong("ReplicaKeyARNs", "replicas have customer keys, and the table itself has none"))
	case p.Key != nil && home == "":
		e.add(wrong("Region", "with a customer key the stack needs a Region, in its Env"))
	case p.Consistency == Strong:
		p.validateStrong(home, &e)
	case p.Witness != "":
		e.add(wrong("Witness", "a witness Region is for strong consistency only"))
	case len(p.Replicas) > 0:
		e.add(wrong("Replicas", eventual))
	case len(p.ReplicaKeyARNs) > 0:
		e.add(wrong("ReplicaKeyARNs", "there are keys, and no replicas"))
	}
	return e.err()
}

func (p *TableProps) validateStrong(home string, e *errorsIn) {
	all := append([]string{home}, p.Replicas...)
	switch {
	case home == "":
		e.add(wrong("Region", "with strong consistency the stack needs a Region, in its Env"))
		return
	case p.Witness == "" && len(p.Replicas) != 2:
		e.add(wrong("Replicas", "strong consistency needs two replicas, or one and a witness Region: got %d and none",
			len(p.Replicas)))
	case p.Witness != "" && len(p.Replicas) != 1:
		e.add(wrong("Replicas", "strong consistency with a witness Region needs one replica, got %d", len(p.Replicas)))
	}
	if p.Witness != "" {
		all = append(all, p.Witness)
	}
	for i, region := range all {
		if slices.Contains(all[:i], region) {
			e.add(wrong("Replicas", "Region %q is named twice", region))
		}
	}
	if !slices.ContainsFunc(regionSets, func(set []string) bool {
		return !slices.ContainsFunc(all, func(region string) bool { return !slices.Contains(set, region) })
	}) {
		e.add(wrong("Replicas", "the Regions %q cannot keep a table with strong consistency together, only those of one of %v",
			all, regionSets))
	}
	for _, region := range p.Replicas {
		if p.Key != nil && p.ReplicaKeyARNs[region] == "" {
			e.add(wrong("ReplicaKeyARNs", "the table has a customer key, and its replica in %s has none", region))
		}
	}
	for region := range p.ReplicaKeyARNs {
		if !slices.Contains(p.Replicas, region) {
			e.add(wrong("ReplicaKeyARNs", "there is a key for %s, and no replica", region))
		}
	}
}

// checkTable refuses a table that somebody else has made and that does not keep
// the promises, or that AWS would refuse although the CDK does not. It cannot
// look into a table that is known by its name only.
func checkTable(table awsdynamodb.ITableV2) error {
	if table == nil {
		return wrong("Table", "Table is required")
	}
	t, ok := table.Node().DefaultChild().(awsdynamodb.CfnGlobalTable)
	if !ok {
		return nil
	}
	resolve := func(v any) any {
		if v == nil {
			return nil
		}
		return awscdk.Stack_Of(t).Resolve(v)
	}
	strong := t.MultiRegionConsistency() != nil && *t.MultiRegionConsistency() == "STRONG"
	replicas, _ := resolve(t.Replicas()).([]any)
	ttl, _ := resolve(t.TimeToLiveSpecification()).(map[string]any)
	want := fmt.Sprintf("[map[attributeName:%s keyType:HASH]]", dynamolease.KeyAttribute)
	switch key := fmt.Sprint(resolve(t.KeySchema())); {
	case key != want:
		return wrong("Table", "its key is %s, want the partition key %s and nothing else", key, dynamolease.KeyAttribute)
	case !strong && len(replicas) > 1:
		return wrong("Table", eventual)
	case strong && ttl != nil:
		return wrong("Table", "DynamoDB has no TTL under strong consistency: the sweeper retires idle locks")
	case ttl != nil && ttl["attributeName"] != dynamolease.RetireAttribute:
		return wrong("Table", "its TTL attribute is %v: items would vanish too early, want %q",
			ttl["attributeName"], dynamolease.RetireAttribute)
	}
	return nil
}
