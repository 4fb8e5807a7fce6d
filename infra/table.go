package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

// A Consistency is what the copies of a table promise each other.
type Consistency string

const (
	// Strong is DynamoDB's multi-Region strong consistency.
	Strong Consistency = "strong"
	// Eventual is refused: two Regions would grant the same lock.
	Eventual Consistency = "eventual"
)

// TableProps describe the table that keeps the locks. The zero value is a table
// in one Region under a key that AWS owns.
type TableProps struct {
	// Name of the table. Empty lets CloudFormation choose. It is needed to reach
	// a replica from a stack in another Region. Like Consistency, Replicas and
	// Witness it is decided once: see the package comment.
	Name string

	// Consistency is empty for a table in one Region, or [Strong].
	Consistency Consistency

	// Replicas are the other Regions under strong consistency: two, or one and
	// a Witness, which keeps no copy that could be read.
	Replicas []string
	Witness  string

	// Key encrypts the table, with ReplicaKeyARNs by Region for its replicas.
	// Nil means a key that AWS owns or, with AWSManagedKey, one in the account
	// that AWS manages.
	Key            awskms.IKey
	ReplicaKeyARNs map[string]string
	AWSManagedKey  bool
}

// NewTable returns the table that keeps the locks: paid by request, with
// point-in-time recovery, protected from deletion, and kept when its stack is
// deleted. In one Region it forgets idle locks by itself; under strong
// consistency it needs a [NewSweeper].
func NewTable(scope constructs.Construct, id string, props *TableProps) awsdynamodb.TableV2 {
	must(props.validate(region(scope)))
	p := &awsdynamodb.TablePropsV2{
		TableName:          str(props.Name),
		PartitionKey:       &awsdynamodb.Attribute{Name: jsii.String(dynamolease.KeyAttribute), Type: awsdynamodb.AttributeType_STRING},
		Billing:            awsdynamodb.Billing_OnDemand(nil),
		DeletionProtection: jsii.Bool(true),
		RemovalPolicy:      awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
	}
	switch {
	case props.Key != nil:
		arns := make(map[string]*string)
		for region, arn := range props.ReplicaKeyARNs {
			arns[region] = jsii.String(arn)
		}
		p.Encryption = awsdynamodb.TableEncryptionV2_CustomerManagedKey(props.Key, &arns)
	case props.AWSManagedKey:
		p.Encryption = awsdynamodb.TableEncryptionV2_AwsManagedKey()
	default:
		p.Encryption = awsdynamodb.TableEncryptionV2_DynamoOwnedKey()
	}
	if props.Consistency == Strong {
		p.MultiRegionConsistency = awsdynamodb.MultiRegionConsistency_STRONG
		p.WitnessRegion = str(props.Witness)
		var replicas []*awsdynamodb.ReplicaTableProps
		for _, region := range props.Replicas {
			replicas = append(replicas, &awsdynamodb.ReplicaTableProps{Region: jsii.String(region)})
		}
		p.Replicas = &replicas
	} else {
		// On any other attribute, TTL would let tokens come again.
		p.TimeToLiveAttribute = jsii.String(dynamolease.RetireAttribute)
	}
	return awsdynamodb.NewTableV2(scope, jsii.String(id), p)
}

// region returns the Region of the stack of scope, or "" if it is decided when
// the stack is deployed.
func region(scope constructs.Construct) string {
	r := awscdk.Stack_Of(scope).Region()
	if *awscdk.Token_IsUnresolved(r) {
		return ""
	}
	return *r
}
