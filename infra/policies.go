package infra

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
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

// NamespaceTag is the tag of an IAM role or user whose value is the namespace in
// which the policies by tag let it in. Whoever may set tags decides that.
const NamespaceTag = "pawl-namespace"

// addPolicies makes a managed policy for each namespace and role, and for each
// role one that takes the namespace from the principal's tag. No value of a tag
// has a "*" or "?", and one with a "/" leads to no route. Their resources have no
// wildcard: in one, "*" matches "/" too, so that "v1/payments/*" would allow
// breaks, and "v1/*/read" more than it seems.
func (s *LockService) addPolicies(props *LockServiceProps) {
	s.Policies, s.Tagged = make(map[string]awsiam.ManagedPolicy), make(map[string]awsiam.ManagedPolicy)
	if props.JWT != nil {
		return // IAM is not asked
	}
	namespaces := props.Namespaces
	if namespaces == nil {
		namespaces = []string{"default"}
	}
	for _, r := range roles {
		s.Tagged[r.name] = s.policy(props, "tagged-"+r.name, "${aws:PrincipalTag/"+NamespaceTag+"}",
			"that the tag "+NamespaceTag+" names", r)
		for _, n := range namespaces {
			s.Policies[n+"/"+r.name] = s.policy(props, n+"-"+r.name, n, n, r)
		}
	}
}

// policy makes one under the path by which the policies of a deployment can be
// listed: a stack has no room for an output for each.
func (s *LockService) policy(props *LockServiceProps, id, namespace, described string, r role) awsiam.ManagedPolicy {
	return awsiam.NewManagedPolicy(s.Construct, jsii.String(id), &awsiam.ManagedPolicyProps{
		Path:        jsii.String(policyPath(s.Construct)),
		Description: jsii.String(r.description + " in the Pawl namespace " + described),
		Statements: &[]awsiam.PolicyStatement{awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("execute-api:Invoke"),
			Resources: s.resources(props.stage(), namespace, r),
		})},
	})
}

// policyPath has the Region because IAM has none.
func policyPath(scope constructs.Construct) string {
	stack := awscdk.Stack_Of(scope)
	return "/pawl/" + *stack.Region() + "/" + *stack.StackName() + "/"
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
