package infra

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// refused makes something and returns the reason for which it was refused.
func refused(do func()) (reason string) {
	defer func() {
		if r := recover(); r != nil {
			reason = fmt.Sprint(r)
		}
	}()
	do()
	return ""
}

// Each is refused before AWS could refuse it, or accept it.
func TestWhatCannotWorkIsRefusedWithAReason(t *testing.T) {
	type change = func(*TableStackProps, *APIStackProps)
	and := func(changes ...change) change {
		return func(s *TableStackProps, a *APIStackProps) {
			for _, c := range changes {
				c(s, a)
			}
		}
	}
	regions := func(witness string, replicas ...string) change {
		return and(makeStrong, func(s *TableStackProps, _ *APIStackProps) { s.Replicas, s.Witness = replicas, witness })
	}
	table := func(c func(*TableStackProps)) change { return func(s *TableStackProps, _ *APIStackProps) { c(s) } }
	api := func(c func(*APIStackProps)) change { return func(_ *TableStackProps, a *APIStackProps) { c(a) } }
	for name, c := range map[string]struct {
		change change
		reason string
	}{
		"eventual consistency":           {table(func(s *TableStackProps) { s.Consistency = Eventual }), "both are granted the same lock"},
		"replicas without consistency":   {table(func(s *TableStackProps) { s.Replicas = []string{"us-east-2"} }), "both are granted the same lock"},
		"another consistency":            {table(func(s *TableStackProps) { s.Consistency = "STRONG" }), `want "strong"`},
		"a witness without consistency":  {table(func(s *TableStackProps) { s.Witness = "us-east-2" }), "strong consistency only"},
		"no replica":                     {regions(""), "two replicas"},
		"one replica, no witness":        {regions("", "us-east-2"), "two replicas"},
		"a witness too many":             {regions("us-west-2", "us-east-2", "us-west-1"), "needs one replica"},
		"a Region twice":                 {regions("", "us-east-2", "us-east-2"), "named twice"},
		"the home Region as replica":     {regions("", "us-east-2", "us-east-1"), "named twice"},
		"the replica as witness":         {regions("us-east-2", "us-east-2"), "named twice"},
		"Regions of two sets":            {regions("", "us-east-2", "eu-west-1"), "together"},
		"a witness of another set":       {regions("eu-west-1", "us-east-2"), "together"},
		"a Region of no set":             {regions("", "us-east-2", "sa-east-1"), "together"},
		"strong consistency, no Region":  {and(makeStrong, table(func(s *TableStackProps) { s.Env = nil })), "needs a Region"},
		"no sweeper":                     {and(makeStrong, table(func(s *TableStackProps) { s.Sweeper.Code = "" })), "sweeper needs"},
		"a sweeper that meets itself":    {and(makeStrong, table(func(s *TableStackProps) { s.Sweeper.Every = time.Minute })), "whole minutes"},
		"two keys":                       {table(func(s *TableStackProps) { s.AWSManagedKey, s.KeyARN = true, keyARN }), "choose"},
		"a key, and no Region":           {table(func(s *TableStackProps) { s.KeyARN = keyARN }), "needs a Region"},
		"a replica without its key":      {and(makeStrong, table(func(s *TableStackProps) { s.KeyARN = keyARN })), "has none"},
		"a key of a replica alone":       {and(makeStrong, table(func(s *TableStackProps) { s.ReplicaKeyARNs = map[string]string{"us-east-2": keyARN} })), "the table itself has none"},
		"a stage called like a version":  {api(func(a *APIStackProps) { a.Stage = "v1" }), "first segment"},
		"a stage called like a route":    {api(func(a *APIStackProps) { a.Stage = "healthz" }), "first segment"},
		"a stage with a slash":           {api(func(a *APIStackProps) { a.Stage = "a/b" }), "name of a stage"},
		"a namespace for all":            {api(func(a *APIStackProps) { a.Namespaces = []string{"*"} }), "not a namespace"},
		"a namespace with a variable":    {api(func(a *APIStackProps) { a.Namespaces = []string{"${aws:username}"} }), "not a namespace"},
		"policies under JWT":             {api(func(a *APIStackProps) { a.JWT, a.Namespaces = &JWT{Issuer: "https://a", Audience: []string{"b"}}, []string{"c"} }), "scopes"},
		"JWT without audience":           {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "https://a"} }), "audience"},
		"JWT without issuer":             {api(func(a *APIStackProps) { a.JWT = &JWT{Audience: []string{"b"}} }), "issuer"},
		"a domain without certificate":   {api(func(a *APIStackProps) { a.Domain = &Domain{Name: "a.example"} }), "certificate"},
		"a throttle for no route":        {api(func(a *APIStackProps) { a.Throttles = map[string]Throttle{"POST /v1": {1, 1}} }), "no route"},
		"a throttle that lets none pass": {api(func(a *APIStackProps) { a.Throttles = map[string]Throttle{"": {Rate: 1}} }), "refuse everything"},
		"no code":                        {api(func(a *APIStackProps) { a.Code = "" }), "make build"},
		"limits out of range":            {api(func(a *APIStackProps) { a.Rules.MaxTTL = 48 * time.Hour }), "maximum TTL"},
		"a retention":                    {api(func(a *APIStackProps) { a.Rules.Retention = 30 * 24 * time.Hour }), "retention"},
		"a restore in seconds": {api(func(a *APIStackProps) {
			a.Rules = lease.Rules{RestoredAt: time.UnixMilli(1_800_000_000)}
		}), "milliseconds"},
	} {
		if reason := refused(func() { stacks(newApp(), c.change) }); !strings.HasPrefix(reason, "infra: ") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: got %q, want %q", name, reason, c.reason)
		}
	}
}

func TestATableOfSomebodyElseMustKeepThePromisesToo(t *testing.T) {
	const twice = "both are granted the same lock"
	for name, c := range map[string]struct {
		change func(*awsdynamodb.TablePropsV2)
		reason string
	}{
		"as NewTable makes it": {func(*awsdynamodb.TablePropsV2) {}, ""},
		"another key":          {func(p *awsdynamodb.TablePropsV2) { p.PartitionKey.Name = jsii.String("id") }, "partition key pk"},
		"a sort key": {func(p *awsdynamodb.TablePropsV2) {
			p.SortKey = &awsdynamodb.Attribute{Name: jsii.String("sk"), Type: awsdynamodb.AttributeType_STRING}
		}, "partition key pk"},
		"TTL on the expiry": {func(p *awsdynamodb.TablePropsV2) { p.TimeToLiveAttribute = jsii.String("exp") }, "vanish too early"},
		"eventual consistency": {func(p *awsdynamodb.TablePropsV2) {
			p.Replicas = &[]*awsdynamodb.ReplicaTableProps{{Region: jsii.String("us-east-2")}}
		}, twice},
		"TTL under strong consistency": {func(p *awsdynamodb.TablePropsV2) {
			p.MultiRegionConsistency = awsdynamodb.MultiRegionConsistency_STRONG
			p.Replicas = &[]*awsdynamodb.ReplicaTableProps{{Region: jsii.String("us-east-2")}}
			p.WitnessRegion = jsii.String("us-west-2")
		}, "no TTL"},
	} {
		stack := awscdk.NewStack(newApp(), jsii.String("Theirs"), &awscdk.StackProps{Env: &awscdk.Environment{Region: jsii.String("us-east-1")}})
		p := &awsdynamodb.TablePropsV2{
			PartitionKey:        &awsdynamodb.Attribute{Name: jsii.String("pk"), Type: awsdynamodb.AttributeType_STRING},
			TimeToLiveAttribute: jsii.String("gc"),
		}
		c.change(p)
		table := awsdynamodb.NewTableV2(stack, jsii.String("Table"), p)
		reason := refused(func() { NewLockService(stack, "Lock", &LockServiceProps{Table: table, Code: code}) })
		if (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: got %q, want %q", name, reason, c.reason)
		}
	}
	if reason := refused(func() {
		NewLockService(awscdk.NewStack(newApp(), jsii.String("X"), nil), "Lock", &LockServiceProps{Code: code})
	}); !strings.Contains(reason, "Table is required") {
		t.Errorf("without a table: %q", reason)
	}
}
