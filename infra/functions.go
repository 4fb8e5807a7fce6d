package infra

import (
	"cmp"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// FunctionProps are the size of one Lambda function.
type FunctionProps struct {
	// Memory in MB, which is also its share of a CPU. Zero means 256.
	Memory int

	// Concurrency is how many calls it answers at a time: reserved from what
	// the account has, and its limit. Zero means 100.
	//
	// Below zero nothing is reserved, for accounts whose quota is too small: AWS
	// refuses to reserve what would leave less than 100 to all other functions.
	// Throttles are then for as many calls as the number has without its sign:
	// -3 for acquire and -7 for the rest suit a new account, which has 10. What
	// other functions of the account do can then take what holders need to renew.
	Concurrency int
}

// concurrent is how many calls there may be at a time.
func (p FunctionProps) concurrent() int {
	n := cmp.Or(p.Concurrency, 100)
	return max(n, -n)
}

// A function is one of ours, before it has the right to do anything.
type function struct {
	FunctionProps
	description string
	code        string
	timeout     time.Duration
	env         map[string]string
	retention   int
	tracing     bool
}

// newFunction makes a function that may write its own log and nothing else. The
// log outlives the function: it says who held and who broke which lock.
func newFunction(scope constructs.Construct, id string, f function) awslambda.Function {
	logs := newLogGroup(scope, id+"Log", "", f.retention)
	role := awsiam.NewRole(scope, jsii.String(id+"Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
	})
	logs.GrantWrite(role)
	env := make(map[string]*string)
	for name, value := range f.env {
		env[name] = jsii.String(value)
	}
	p := &awslambda.FunctionProps{
		Description:  jsii.String(f.description),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: awslambda.Architecture_ARM_64(),
		Handler:      jsii.String("bootstrap"),
		Code:         awslambda.Code_FromAsset(jsii.String(f.code), nil),
		MemorySize:   jsii.Number(cmp.Or(f.Memory, 256)),
		Timeout:      awscdk.Duration_Seconds(jsii.Number(f.timeout.Seconds())),
		Environment:  &env,
		Role:         role,
		LogGroup:     logs,
	}
	if n := cmp.Or(f.Concurrency, 100); n > 0 {
		p.ReservedConcurrentExecutions = jsii.Number(n)
	}
	if f.tracing {
		p.Tracing = awslambda.Tracing_ACTIVE
	}
	return awslambda.NewFunction(scope, jsii.String(id), p)
}

// newLogGroup makes a log that is kept when its stack is deleted, but not when its
// stack could not be made. A name of "" lets CloudFormation choose.
func newLogGroup(scope constructs.Construct, id, name string, days int) awslogs.LogGroup {
	g := awslogs.NewLogGroup(scope, jsii.String(id), &awslogs.LogGroupProps{
		LogGroupName: str(name), RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
	})
	g.Node().DefaultChild().(awslogs.CfnLogGroup).SetRetentionInDays(jsii.Number(cmp.Or(days, 90)))
	return g
}

// allowTable lets a function make exactly these calls, on exactly this table.
func allowTable(f awslambda.Function, table awsdynamodb.ITableV2, condition map[string]any, actions ...string) {
	p := &awsiam.PolicyStatementProps{
		Actions:   jsii.Strings(actions...),
		Resources: &[]*string{table.TableArn()},
	}
	if condition != nil {
		p.Conditions = &condition
	}
	f.AddToRolePolicy(awsiam.NewPolicyStatement(p))
}

// allowKey lets a function use a customer's key, but only through DynamoDB. The
// actions are those that DynamoDB documents for whoever uses a table, one by one.
func allowKey(f awslambda.Function, key awskms.IKey) {
	if key == nil {
		return
	}
	f.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey",
			"kms:ReEncryptFrom", "kms:ReEncryptTo"),
		Resources: &[]*string{key.KeyArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{
			"kms:ViaService": "dynamodb." + *awscdk.Stack_Of(f).Region() + ".amazonaws.com",
		}},
	}))
}
