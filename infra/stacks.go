package infra

import (
	"maps"
	"slices"
	"strings"

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

	// Sweeper describes the sweeper of a table with strong consistency. Its
	// Table is this one.
	Sweeper SweeperProps
}

// NewTableStack makes the stack that stays: a table, and what it needs to
// forget idle locks. Deleting it takes two steps by hand, and leaves the table.
func NewTableStack(scope constructs.Construct, id string, props *TableStackProps) (awscdk.Stack, awsdynamodb.TableV2) {
	p := props.StackProps
	p.TerminationProtection = jsii.Bool(true)
	stack := awscdk.NewStack(scope, jsii.String(id), &p)
	tableProps := props.TableProps
	if props.KeyARN != "" {
		tableProps.Key = awskms.Key_FromKeyArn(stack, jsii.String("Key"), jsii.String(props.KeyARN))
	}
	table := NewTable(stack, "Table", &tableProps)
	if props.Consistency == Strong {
		sweeper := props.Sweeper
		sweeper.Table = table
		NewSweeper(stack, "Sweeper", &sweeper)
	}
	output(stack, "TableName", "The table with the locks", table.TableName())
	return stack, table
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
	policies := constructs.NewConstruct(stack, jsii.String("Policy"))
	for _, name := range slices.Sorted(maps.Keys(lock.Policies)) {
		output(policies, strings.Replace(name, "/", "-", 1), "IAM policy "+name, lock.Policies[name].ManagedPolicyArn())
	}
	return stack, lock
}

func output(scope constructs.Construct, id, description string, value *string) {
	awscdk.NewCfnOutput(scope, jsii.String(id), &awscdk.CfnOutputProps{Description: jsii.String(description), Value: value})
}
