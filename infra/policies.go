package infra

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// A role is what someone does with the locks of one namespace.
type role struct {
	name, description string
	actions           []string // the last segments of the routes that it needs
}

// Whoever breaks a lease must name its token, and so must be able to look.
var roles = []role{
	{"client", "Hold locks", []string{"acquire", "renew", "release", "read"}},
	{"reader", "See who holds a lock", []string{"read"}},
	{"breaker", "See who holds a lock, and break leases", []string{"read", "break"}},
}

// addPolicies makes a managed policy for each namespace and role. Their
// resources have no wildcard: in one, "*" matches "/" too, so that
// "v1/payments/*" would allow breaks, and "v1/*/read" more than it seems.
func (s *LockService) addPolicies(props *LockServiceProps) {
	s.Policies = make(map[string]awsiam.ManagedPolicy)
	if props.JWT != nil {
		return // IAM is not asked
	}
	namespaces := props.Namespaces
	if namespaces == nil {
		namespaces = []string{"default"}
	}
	for _, namespace := range namespaces {
		for _, r := range roles {
			s.Policies[namespace+"/"+r.name] = awsiam.NewManagedPolicy(s.Construct, jsii.String(namespace+"-"+r.name), &awsiam.ManagedPolicyProps{
				Description: jsii.String(r.description + " in the Pawl namespace " + namespace),
				Statements: &[]awsiam.PolicyStatement{awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
					Actions:   jsii.Strings("execute-api:Invoke"),
					Resources: s.resources(props.stage(), namespace, r),
				})},
			})
		}
	}
}

// resources returns the routes of a role in one namespace, as IAM names them.
func (s *LockService) resources(stage, namespace string, r role) *[]*string {
	var arns []*string
	all, _ := httplease.Routes()
	for _, action := range r.actions {
		for _, key := range all {
			method, path, _ := strings.Cut(key, " ")
			if path = strings.Replace(path, "{namespace}", namespace, 1); strings.HasSuffix(path, "/"+namespace+"/"+action) {
				arns = append(arns, s.API.ArnForExecuteApi(jsii.String(method), jsii.String(path), jsii.String(stage)))
			}
		}
	}
	return &arns
}
