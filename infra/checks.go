package infra

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// errEventual is why there are no global tables with eventual consistency.
var errEventual = errors.New("infra: a global table with eventual consistency accepts conditional writes of two Regions at once, " +
	"so that both are granted the same lock; use one Region, or strong consistency")

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
	switch {
	case p.Consistency == Eventual:
		return errEventual
	case p.Consistency != "" && p.Consistency != Strong:
		return fmt.Errorf("infra: consistency is %q, want %q or none", p.Consistency, Strong)
	case p.AWSManagedKey && p.Key != nil:
		return errors.New("infra: the table has a customer key and the AWS managed one: choose")
	case p.Key == nil && len(p.ReplicaKeyARNs) > 0:
		return errors.New("infra: replicas have customer keys, and the table itself has none")
	case p.Key != nil && home == "":
		return errors.New("infra: with a customer key the stack needs a Region, in its Env")
	case p.Consistency == Strong:
		return p.validateStrong(home)
	case p.Witness != "":
		return errors.New("infra: a witness Region is for strong consistency only")
	case len(p.Replicas) > 0:
		return errEventual
	}
	return nil
}

func (p *TableProps) validateStrong(home string) error {
	all := append([]string{home}, p.Replicas...)
	switch {
	case home == "":
		return errors.New("infra: with strong consistency the stack needs a Region, in its Env")
	case p.Witness == "" && len(p.Replicas) != 2:
		return fmt.Errorf("infra: strong consistency needs two replicas, or one and a witness Region: got %d and none", len(p.Replicas))
	case p.Witness != "" && len(p.Replicas) != 1:
		return fmt.Errorf("infra: strong consistency with a witness Region needs one replica, got %d", len(p.Replicas))
	case p.Witness != "":
		all = append(all, p.Witness)
	}
	for i, region := range all {
		if slices.Contains(all[:i], region) {
			return fmt.Errorf("infra: Region %s is named twice", region)
		}
	}
	if !slices.ContainsFunc(regionSets, func(set []string) bool {
		return !slices.ContainsFunc(all, func(region string) bool { return !slices.Contains(set, region) })
	}) {
		return fmt.Errorf("infra: the Regions %v cannot keep a table with strong consistency together, only those of one of %v", all, regionSets)
	}
	for _, region := range p.Replicas {
		if p.Key != nil && p.ReplicaKeyARNs[region] == "" {
			return fmt.Errorf("infra: the table has a customer key, and its replica in %s has none", region)
		}
	}
	return nil
}

// checkTable refuses a table that somebody else has made and that does not keep
// the promises, or that AWS would refuse although the CDK does not. It cannot
// look into a table that is known by its name only.
func checkTable(table awsdynamodb.ITableV2) error {
	if table == nil {
		return errors.New("infra: Table is required")
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
	switch key := fmt.Sprint(resolve(t.KeySchema())); {
	case key != "[map[attributeName:pk keyType:HASH]]":
		return fmt.Errorf("infra: the key of the table is %s, want the partition key pk and nothing else", key)
	case !strong && len(replicas) > 1:
		return errEventual
	case strong && ttl != nil:
		return errors.New("infra: DynamoDB has no TTL under strong consistency: the sweeper retires idle locks")
	case ttl != nil && ttl["attributeName"] != retirement:
		return fmt.Errorf("infra: the TTL attribute is %v: items would vanish too early, want %q", ttl["attributeName"], retirement)
	}
	return nil
}

var (
	stageName     = regexp.MustCompile(`^(\$default|[A-Za-z0-9_-]{1,128})$`)
	namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

func (p *LockServiceProps) validate() error {
	if p.Code == "" {
		return errors.New("infra: Code is required: the directory with the function's bootstrap, see make build")
	}
	if err := validRules(p.Rules); err != nil {
		return err
	}
	if err := validStage(p.stage()); err != nil {
		return err
	}
	if p.JWT != nil && (!strings.HasPrefix(p.JWT.Issuer, "https://") || len(p.JWT.Audience) == 0) {
		return errors.New("infra: JWT needs an issuer, a URL with https, and an audience")
	}
	if p.JWT != nil && len(p.Namespaces) > 0 {
		return errors.New("infra: Namespaces are for IAM policies; under JWT, what a caller may do is in the scopes of the token")
	}
	for _, n := range p.Namespaces {
		// A namespace goes into IAM policies, where "*" would mean all.
		if !namespaceName.MatchString(n) {
			return fmt.Errorf("infra: %q is not a namespace", n)
		}
	}
	if p.Domain != nil && (p.Domain.Name == "" || p.Domain.CertificateARN == "") {
		return errors.New("infra: a domain needs its name and the ARN of its certificate")
	}
	all, _ := httplease.Routes()
	for key, t := range p.throttles() {
		if key != "" && !slices.Contains(all, key) {
			return fmt.Errorf("infra: throttle for %q, which is no route: want one of %q", key, all)
		}
		if t.Rate <= 0 || t.Burst <= 0 {
			return fmt.Errorf("infra: throttle of %q is %v: it would refuse everything", key, t)
		}
	}
	return nil
}

// validRules is checked here because the function would notice only when it
// starts, and then answer nothing but 500.
func validRules(r lease.Rules) error {
	if r.Retention != 0 {
		return errors.New("infra: the retention of idle locks cannot be configured")
	}
	if at := r.RestoredAt; !at.IsZero() && (at.Year() < 2020 || at.Year() > 2100) {
		return fmt.Errorf("infra: the table was restored at %v? The time is in milliseconds", at)
	}
	if err := r.Validate(time.Now()); err != nil {
		return fmt.Errorf("infra: Rules: %w", err)
	}
	return nil
}

// validStage refuses a stage that is called like the first segment of a route:
// package apigw cuts the stage off the front of paths.
func validStage(name string) error {
	if !stageName.MatchString(name) {
		return fmt.Errorf("infra: %q cannot be the name of a stage", name)
	}
	all, _ := httplease.Routes()
	for _, key := range all {
		if _, path, _ := strings.Cut(key, " "); strings.HasPrefix(path+"/", "/"+name+"/") {
			return fmt.Errorf("infra: a stage cannot be called %q: on a custom domain %s would lose its first segment", name, path)
		}
	}
	return nil
}
