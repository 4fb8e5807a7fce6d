package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Flags are what the context of an app with these stacks should have: what one
// stack takes from the other cannot be taken away from under it.
func Flags() map[string]any {
	return map[string]any{"@aws-cdk/core:defaultCrossStackReferences": "strong"}
}

// TableStackProps describe the stack with the table.
type TableStackProps struct {
	awscdk.StackProps
	TableProps

	// KeyARN names a customer key, in place of Key.
	KeyARN string
}

// NewTableStack makes the stack that stays. Nothing but the table is in it, so
// that nothing else can fail and take the table back. Deleting it takes two steps
// by hand, and leaves the table.
func NewTableStack(scope constructs.Construct, id string, props *TableStackProps) (awscdk.Stack, awsdynamodb.TableV2) {
	p := props.StackProps
	p.TerminationProtection = jsii.Bool(true)
	stack := awscdk.NewStack(scope, jsii.String(id), &p)
	tableProps := props.TableProps
	if props.KeyARN != "" {
		var e errorsIn
		e.arn("KeyARN", props.KeyARN, key, region(stack))
		must(e.err())
		tableProps.Key = awskms.Key_FromKeyArn(stack, jsii.String("Key"), jsii.String(props.KeyARN))
	}
	table := NewTable(stack, "Table", &tableProps)
	output(stack, "TableName", "The table with the locks", table.TableName())
	return stack, table
}

// SweeperStackProps describe the stack with the sweeper.
type SweeperStackProps struct {
	awscdk.StackProps
	SweeperProps
}

// NewSweeperStack makes the stack that a table with strong consistency needs to
// forget idle locks. It can be deleted and made again.
func NewSweeperStack(scope constructs.Construct, id string, props *SweeperStackProps) awscdk.Stack {
	stack := awscdk.NewStack(scope, jsii.String(id), &props.StackProps)
	NewSweeper(stack, "Sweeper", &props.SweeperProps)
	return stack
}

// APIStackProps describe the stack with the API.
type APIStackProps struct {
	awscdk.StackProps
	LockServiceProps

	// TableName names a table that exists, in place of Table: one that was
	// restored, or the replica in the Region of the stack. KeyARN is its
	// customer key, if it has one.
	TableName, KeyARN string
}

// NewAPIStack makes the stack that can be deleted and made again: everything but
// the table.
func NewAPIStack(scope constructs.Construct, id string, props *APIStackProps) (awscdk.Stack, LockService) {
	stack := awscdk.NewStack(scope, jsii.String(id), &props.StackProps)
	service := props.LockServiceProps
	if props.TableName != "" {
		var e errorsIn
		e.matches("TableName", props.TableName, tableName, "the name of a table, not its ARN: 3 to 255 letters, digits, and _ . -")
		e.arn("KeyARN", props.KeyARN, key, region(stack))
		must(e.err())
		a := &awsdynamodb.TableAttributesV2{TableName: jsii.String(props.TableName)}
		if props.KeyARN != "" {
			a.EncryptionKey = awskms.Key_FromKeyArn(stack, jsii.String("Key"), jsii.String(props.KeyARN))
		}
		service.Table = awsdynamodb.TableV2_FromTableAttributes(stack, jsii.String("Table"), a)
	}
	lock := NewLockService(stack, "Lock", &service)
	output(stack, "URL", "Where the API is", lock.URL)
	if lock.DomainTarget != nil {
		output(stack, "DomainTarget", "What the DNS record of the domain points to", lock.DomainTarget)
	}
	if len(lock.Policies) > 0 {
		output(stack, "Policies", "The path of the IAM policies: aws iam list-policies --path-prefix", jsii.String(policyPath(stack)))
	}
	return stack, lock
}

func output(scope constructs.Construct, id, description string, value *string) {
	awscdk.NewCfnOutput(scope, jsii.String(id), &awscdk.CfnOutputProps{Description: jsii.String(description), Value: value})
}
