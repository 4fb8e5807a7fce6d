package infra

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/pkg/lease/protocol"
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
		"eventual consistency":          {table(func(s *TableStackProps) { s.Consistency = Eventual }), "both are granted the same lock"},
		"replicas without consistency":  {table(func(s *TableStackProps) { s.Replicas = []string{"us-east-2"} }), "both are granted the same lock"},
		"another consistency":           {table(func(s *TableStackProps) { s.Consistency = "STRONG" }), `want "strong"`},
		"a witness without consistency": {table(func(s *TableStackProps) { s.Witness = "us-east-2" }), "strong consistency only"},
		"no replica":                    {regions(""), "two replicas"},
		"one replica, no witness":       {regions("", "us-east-2"), "two replicas"},
		"a witness too many":            {regions("us-west-2", "us-east-2", "us-west-1"), "needs one replica"},
		"a Region twice":                {regions("", "us-east-2", "us-east-2"), "named twice"},
		"the home Region as replica":    {regions("", "us-east-2", "us-east-1"), "named twice"},
		"the replica as witness":        {regions("us-east-2", "us-east-2"), "named twice"},
		"Regions of two sets":           {regions("", "us-east-2", "eu-west-1"), "together"},
		"a witness of another set":      {regions("eu-west-1", "us-east-2"), "together"},
		"a Region of no set":            {regions("", "us-east-2", "sa-east-1"), "together"},
		"strong consistency, no Region": {and(makeStrong, table(func(s *TableStackProps) { s.Env = nil })), "needs a Region"},
		"two keys":                      {table(func(s *TableStackProps) { s.AWSManagedKey, s.KeyARN = true, keyARN }), "choose"},
		"a key, and no Region":          {table(func(s *TableStackProps) { s.KeyARN = keyARN }), "needs a Region"},
		"a replica without its key":     {and(makeStrong, table(func(s *TableStackProps) { s.KeyARN = keyARN })), "has none"},
		"a key of a replica alone":      {and(makeStrong, table(func(s *TableStackProps) { s.ReplicaKeyARNs = map[string]string{"us-east-2": keyARN} })), "the table itself has none"},
		"a stage called like a version": {api(func(a *APIStackProps) { a.Stage = "v1" }), "first segment"},
		"a stage called like a route":   {api(func(a *APIStackProps) { a.Stage = "healthz" }), "first segment"},
		"a stage with a slash":          {api(func(a *APIStackProps) { a.Stage = "a/b" }), "letters, digits"},
		"a namespace for all":           {api(func(a *APIStackProps) { a.Namespaces = []string{"*"} }), "want a namespace"},
		"a namespace with a variable":   {api(func(a *APIStackProps) { a.Namespaces = []string{"${aws:username}"} }), "want a namespace"},
		"policies under JWT": {api(func(a *APIStackProps) {
			a.JWT, a.Namespaces = &JWT{Issuer: "https://a", Audience: []string{"b"}}, []string{"c"}
		}), "scopes"},
		"JWT without audience":           {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "https://a"} }), "Audience"},
		"JWT without issuer":             {api(func(a *APIStackProps) { a.JWT = &JWT{Audience: []string{"b"}} }), "Issuer"},
		"a domain without certificate":   {api(func(a *APIStackProps) { a.Domain = &Domain{Name: "a.example"} }), "certificate"},
		"a throttle for no route":        {api(func(a *APIStackProps) { a.Throttles = map[string]Throttle{"POST /v1": {1, 1}} }), "no route"},
		"a throttle that lets none pass": {api(func(a *APIStackProps) { a.Throttles = map[string]Throttle{"": {Rate: 1}} }), "above 0"},
		"no code":                        {api(func(a *APIStackProps) { a.Code = "" }), "make build"},
		"limits out of range":            {api(func(a *APIStackProps) { a.Rules.MaxTTL = 48 * time.Hour }), "maximum TTL"},
		"a retention":                    {api(func(a *APIStackProps) { a.Rules.Retention = 30 * 24 * time.Hour }), "retention"},
		"a restore in seconds":           {api(func(a *APIStackProps) { a.Rules = restored(time.UnixMilli(1_800_000_000)) }), "2020"},
		"a restore to come":              {api(func(a *APIStackProps) { a.Rules = restored(time.Now().Add(time.Hour)) }), "which is now"},
		"a restore without its end":      {api(func(a *APIStackProps) { a.Rules.RestoredAt = time.Now().Add(-time.Hour) }), "QuarantineEnd"},
		"a Region of no shape":           {api(func(a *APIStackProps) { a.Env = &awscdk.Environment{Region: jsii.String("mars-1")} }), "name of a Region"},
		"a table for all":                {api(func(a *APIStackProps) { a.TableName = "*" }), "TableName"},
		"the ARN of a table":             {api(func(a *APIStackProps) { a.TableName = "arn:aws:dynamodb:us-east-1:123456789012:table/x" }), "not its ARN"},
		"a name that no table has":       {table(func(s *TableStackProps) { s.Name = "a b*" }), "Name"},
		"a key that is none":             {table(func(s *TableStackProps) { s.KeyARN = "alias/a" }), "KeyARN"},
		"a key of another Region":        {and(makeStrong, table(func(s *TableStackProps) { s.KeyARN = keyIn("us-east-2") })), "want one in us-east-1"},
		"a replica's key from elsewhere": {and(makeStrong, table(func(s *TableStackProps) {
			s.KeyARN, s.ReplicaKeyARNs = keyARN, map[string]string{"us-east-2": keyARN, "us-west-2": keyIn("us-west-2")}
		})), "want one in us-east-2"},
		"little memory":                {api(func(a *APIStackProps) { a.Acquire.Memory = 64 }), "128 to 10240"},
		"much memory":                  {api(func(a *APIStackProps) { a.Rest.Memory = 20_000 }), "128 to 10240"},
		"more than any account has":    {api(func(a *APIStackProps) { a.Rest.Concurrency = 100_000 }), "calls at a time"},
		"less than a call for a route": {api(func(a *APIStackProps) { a.Rest.Concurrency = 5 }), "routes lead there"},
		"bursts that Lambda refuses": {api(func(a *APIStackProps) { a.Throttles = map[string]Throttle{"": {Rate: 1000, Burst: 50}} }),
			"answers 100 at a time"},
		"a rate that is no number":     {api(func(a *APIStackProps) { a.Throttles = map[string]Throttle{"": {Rate: math.NaN(), Burst: 1}} }), "above 0"},
		"days that CloudWatch has not": {api(func(a *APIStackProps) { a.LogRetentionDays = 91 }), "one of [1 3 5"},
		"days below zero":              {api(func(a *APIStackProps) { a.LogRetentionDays = -1 }), "one of [1 3 5"},
		"a mail address as topic":      {api(func(a *APIStackProps) { a.AlarmTopicARN = "alerts@example.com" }), "arn:aws:sns"},
		"a topic of another Region":    {and(makeStrong, api(func(a *APIStackProps) { a.AlarmTopicARN = "arn:aws:sns:eu-west-1:123456789012:a" })), "want one in us-east-1"},
		"a URL as domain":              {api(func(a *APIStackProps) { a.Domain = &Domain{"https://locks.example.com/", certificateARN} }), "without https://"},
		"a domain for all":             {api(func(a *APIStackProps) { a.Domain = &Domain{"*.example.com", certificateARN} }), "wildcard"},
		"a certificate that is none":   {api(func(a *APIStackProps) { a.Domain = &Domain{"locks.example.com", "foo"} }), "arn:aws:acm"},
		"an issuer without a host":     {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "https://", Audience: []string{"b"}} }), "host"},
		"an issuer over HTTP":          {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "http://a.example", Audience: []string{"b"}} }), "https"},
		"an audience of spaces":        {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "https://a", Audience: []string{" b"}} }), "spaces"},
		"an audience of nothing":       {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "https://a", Audience: []string{"b", ""}} }), "empty"},
		"a claim with a space":         {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "https://a", Audience: []string{"b"}, ScopeClaim: "a b"} }), "claim"},
		"a claim that names callers":   {api(func(a *APIStackProps) { a.JWT = &JWT{Issuer: "https://a", Audience: []string{"b"}, ScopeClaim: "sub"} }), "ScopeClaim"},
		"a namespace twice":            {api(func(a *APIStackProps) { a.Namespaces = []string{"a", "b", "a"} }), "named twice"},
		"more namespaces than fit":     {api(func(a *APIStackProps) { a.Namespaces = numbered(101) }), "principal's tag pawl-namespace"},
	} {
		if reason := refused(func() { stacks(newApp(), c.change) }); !strings.HasPrefix(reason, "infra: ") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: got %q, want %q", name, reason, c.reason)
		}
	}
}

const certificateARN = "arn:aws:acm:us-east-1:123456789012:certificate/00000000-0000-4000-8000-000000000000"

func restored(at time.Time) protocol.Rules {
	return protocol.Rules{RestoredAt: at, QuarantineEnd: protocol.Rules{}.QuarantineAfter(at)}
}

// numbered are n namespaces.
func numbered(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("team-%d", i))
	}
	return all
}

func TestASweeperThatCannotWorkIsRefusedWithAReason(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*SweeperStackProps)
		reason string
	}{
		"no code":                  {func(s *SweeperStackProps) { s.Code = "" }, "make build"},
		"one that meets itself":    {func(s *SweeperStackProps) { s.Every = time.Minute }, "whole minutes"},
		"one that comes too late":  {func(s *SweeperStackProps) { s.Every = 24 * time.Hour }, "whole minutes"},
		"parts of a minute":        {func(s *SweeperStackProps) { s.Every = 20*time.Minute + 1 }, "whole minutes"},
		"one that is slow":         {func(s *SweeperStackProps) { s.Rate = 0.5 }, "1 to 10000"},
		"one that takes all":       {func(s *SweeperStackProps) { s.Rate = 20_000 }, "1 to 10000"},
		"a retention of 91 days":   {func(s *SweeperStackProps) { s.LogRetentionDays = 91 }, "one of [1 3 5"},
		"a topic that is no topic": {func(s *SweeperStackProps) { s.AlarmTopicARN = "me" }, "arn:aws:sns"},
	} {
		if reason := refused(func() { sweeping(newApp(), c.change) }); !strings.HasPrefix(reason, "infra: ") || !strings.Contains(reason, c.reason) {
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
