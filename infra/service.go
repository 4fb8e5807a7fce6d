package infra

import (
	"cmp"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// LockServiceProps describe the API.
type LockServiceProps struct {
	// Table keeps the locks; see [NewTable]. Required. If it is one that the
	// CDK knows by name only, and it has a customer key, import it with the key.
	Table awsdynamodb.ITableV2

	// Code is the directory with the compiled function: dist/api after "make
	// build". Required.
	Code string

	// Rules are the limits of the deployment. RestoredAt and QuarantineEnd must be
	// set as long as the table has anything from a backup in it. Retention must
	// be zero.
	Rules protocol.Rules

	// Acquire is the function that may wait, Rest the one for everything else.
	// They are two so that waiters never take what holders need to renew.
	Acquire, Rest FunctionProps

	// JWT makes callers show a token. Nil means that they sign with IAM.
	JWT *JWT

	// Namespaces get a managed policy for each role, up to 100 of them. Nil means
	// "default". For any number of others there are policies by [NamespaceTag].
	Namespaces []string

	// Stage is the name of the stage. Empty means $default, at the root.
	Stage string

	// Domain serves the API under a name of one's own, and only there.
	Domain *Domain

	// Throttles replace the defaults by route, as "POST /v1/{namespace}/break";
	// "" stands for renew, release and read, each. By default they follow from
	// the concurrency of the functions; together they must not exceed it.
	Throttles map[string]Throttle

	// LogRetentionDays is how long logs are kept: one of the numbers that
	// CloudWatch knows. Zero means 90.
	LogRetentionDays int

	// Tracing sends traces of the functions to X-Ray.
	Tracing bool

	// AlarmTopicARN is the SNS topic, in the same Region, that hears of alarms.
	// Empty means that they can only be seen.
	AlarmTopicARN string
}

// A JWT says which tokens are accepted. What their callers may do is in their
// scopes, as "payments/acquire"; the function checks them.
type JWT struct {
	Issuer   string
	Audience []string

	// ScopeClaim is one more claim with scopes, beside scope and scp: "roles" for
	// applications of Entra ID, "permissions" for Auth0. Empty means none.
	ScopeClaim string
}

// A Domain is a name with a certificate for it, in the API's Region. Its DNS
// record is the owner's to make: it points to [LockService].DomainTarget.
type Domain struct{ Name, CertificateARN string }

// A Throttle is what a route takes: requests a second, and at once.
type Throttle struct {
	Rate  float64
	Burst int
}

// A LockService is the API with its functions, policies and alarms.
type LockService struct {
	constructs.Construct

	API           awsapigatewayv2.HttpApi
	URL           *string // without a slash at the end
	DomainTarget  *string // what the DNS record of the domain points to; nil without one
	Acquire, Rest awslambda.Function
	Policies      map[string]awsiam.ManagedPolicy // by "namespace/role"
	Tagged        map[string]awsiam.ManagedPolicy // by role, for the namespace in the principal's [NamespaceTag]
	Alarms        map[string]awscloudwatch.Alarm  // by what they watch
}

// Timeouts. A waiting acquire must answer before the gateway gives up at 30 s.
const (
	acquireTimeout = 29 * time.Second
	restTimeout    = 10 * time.Second
)

// NewLockService makes the lock service on a table that exists.
func NewLockService(scope constructs.Construct, id string, props *LockServiceProps) LockService {
	must(checkTable(props.Table))
	must(props.validate(region(scope), time.Now()))
	s := LockService{Construct: constructs.NewConstruct(scope, jsii.String(id))}
	newFunction := func(id, description string, size FunctionProps, timeout time.Duration) awslambda.Function {
		f := newFunction(s.Construct, id, function{
			FunctionProps: size,
			description:   description,
			code:          props.Code,
			timeout:       timeout,
			env:           props.environment(metricsOf(scope)),
			retention:     props.LogRetentionDays,
			tracing:       props.Tracing,
		})
		allowTable(f, props.Table, nil, "dynamodb:GetItem", "dynamodb:UpdateItem")
		allowKey(f, props.Table.EncryptionKey())
		return f
	}
	s.Acquire = newFunction("Acquire", "Pawl: acquire, which may wait", props.Acquire, acquireTimeout)
	s.Rest = newFunction("Rest", "Pawl: all calls that do not wait", props.Rest, restTimeout)
	s.addAPI(props)
	s.addPolicies(props)
	s.addAlarms(props)
	s.addDashboard()
	s.addQueries()
	return s
}

// environment is what functions/api reads. Limits that are not set are left out:
// the function has the same defaults.
func (p *LockServiceProps) environment(metrics string) map[string]string {
	s := settings.API{Table: *p.Table.TableName(), Auth: settings.IAM, Metrics: metrics, Rules: p.Rules}
	if p.JWT != nil {
		s.Auth, s.ScopeClaim = settings.JWT, p.JWT.ScopeClaim
	}
	return s.Environ()
}

// metricsOf is where CloudWatch keeps the metrics of a stack: not where those of
// another deployment are, whose alarms they would ring.
func metricsOf(scope constructs.Construct) string {
	return "Pawl/" + *awscdk.Stack_Of(scope).StackName()
}

func (p *LockServiceProps) stage() string { return cmp.Or(p.Stage, "$default") }
