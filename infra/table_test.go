package infra

import (
	"fmt"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func TestTheTableOutlivesItsStackAndItsMistakes(t *testing.T) {
	for name, table := range map[string]func() (template, template){"one Region": defaults, "strong consistency": strong} {
		x, _ := table()
		id, p := x.one(t, "AWS::DynamoDB::GlobalTable")
		r := props(x["Resources"].(map[string]any)[id].(map[string]any))
		if r["DeletionPolicy"] != "RetainExceptOnCreate" || r["UpdateReplacePolicy"] != "Retain" {
			t.Errorf("%s: deleted with its stack: %v, %v", name, r["DeletionPolicy"], r["UpdateReplacePolicy"])
		}
		if p["BillingMode"] != "PAY_PER_REQUEST" {
			t.Errorf("%s: billing is %v", name, p["BillingMode"])
		}
		if key := fmt.Sprint(p["KeySchema"]); key != "[map[AttributeName:pk KeyType:HASH]]" {
			t.Errorf("%s: the key is %s", name, key)
		}
		for _, replica := range p["Replicas"].([]any) {
			r := props(replica.(map[string]any))
			if r["DeletionProtectionEnabled"] != true || r.at("PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") != true {
				t.Errorf("%s: the replica in %v has no protection or no recovery: %v", name, r["Region"], r)
			}
		}
	}
	table, _ := stacks(newApp(), nil)
	if !*table.TerminationProtection() {
		t.Error("the stack itself is not protected")
	}
}

func TestIdleLocksAreForgottenByTTLOrByTheSweeperAndNeverByBoth(t *testing.T) {
	x, _ := defaults()
	_, p := x.one(t, "AWS::DynamoDB::GlobalTable")
	if got := fmt.Sprint(p["TimeToLiveSpecification"]); got != "map[AttributeName:gc Enabled:true]" {
		t.Errorf("in one Region, TTL is %s", got)
	}
	if n := len(x.of("AWS::Lambda::Function")); n != 0 {
		t.Errorf("in one Region there are %d functions next to the table", n)
	}

	x, _ = strong()
	_, p = x.one(t, "AWS::DynamoDB::GlobalTable")
	if p["TimeToLiveSpecification"] != nil {
		t.Errorf("under strong consistency, TTL is %v", p["TimeToLiveSpecification"])
	}
	if p["MultiRegionConsistency"] != "STRONG" || len(p["Replicas"].([]any)) != 3 {
		t.Errorf("got %v", p)
	}
	if n := len(x["Resources"].(map[string]any)); n != 1 { // or its failure would take the table back
		t.Errorf("there are %d resources in the stack of the table", n)
	}
	_, x = strong()
	sweeper, f := x.one(t, "AWS::Lambda::Function")
	if f["ReservedConcurrentExecutions"] != 1.0 || f["Timeout"] != 14*60.0 {
		t.Errorf("the sweeper runs %v at a time for %v s", f["ReservedConcurrentExecutions"], f["Timeout"])
	}
	rule, schedule := x.one(t, "AWS::Events::Rule")
	if schedule["ScheduleExpression"] != "rate(60 minutes)" || resolve(schedule.at("Targets", 0, "Arn")) != "<"+sweeper+".Arn>" {
		t.Errorf("got schedule %v", schedule)
	}
	_, permission := x.one(t, "AWS::Lambda::Permission")
	if permission["Principal"] != "events.amazonaws.com" || resolve(permission["SourceArn"]) != "<"+rule+".Arn>" {
		t.Errorf("the schedule may not run the sweeper: %v", permission)
	}
}

func TestAWitnessTakesThePlaceOfOneReplica(t *testing.T) {
	x, _ := synth(t, func(s *TableStackProps, a *APIStackProps) {
		makeStrong(s, a)
		s.Replicas, s.Witness = []string{"us-east-2"}, "us-west-2"
	})
	_, p := x.one(t, "AWS::DynamoDB::GlobalTable")
	if got := fmt.Sprint(p["GlobalTableWitnesses"]); got != "[map[Region:us-west-2]]" || len(p["Replicas"].([]any)) != 2 {
		t.Errorf("witnesses %s, replicas %v", got, p["Replicas"])
	}
}

var keyARN = keyIn("us-east-1")

func keyIn(region string) string {
	return "arn:aws:kms:" + region + ":123456789012:key/00000000-0000-4000-8000-000000000000"
}

func TestTheTableIsEncryptedAsIsAsked(t *testing.T) {
	x, _ := defaults()
	_, p := x.one(t, "AWS::DynamoDB::GlobalTable")
	if got := fmt.Sprint(p["SSESpecification"]); got != "map[SSEEnabled:false]" { // under a key that AWS owns
		t.Errorf("by default: %s", got)
	}
	x, _ = synth(t, func(s *TableStackProps, _ *APIStackProps) { s.AWSManagedKey = true })
	_, p = x.one(t, "AWS::DynamoDB::GlobalTable")
	if got := fmt.Sprint(p["SSESpecification"]); got != "map[SSEEnabled:true SSEType:KMS]" {
		t.Errorf("with the managed key: %s", got)
	}
	x, api := synth(t, func(s *TableStackProps, a *APIStackProps) {
		s.Env = &awscdk.Environment{Region: jsii.String("us-east-1")}
		a.Env, s.KeyARN = s.Env, keyARN
	})
	_, p = x.one(t, "AWS::DynamoDB::GlobalTable")
	if got := props(p).at("Replicas", 0, "SSESpecification", "KMSMasterKeyId"); got != keyARN {
		t.Errorf("with a customer key: %v", p)
	}
	// Then the functions need the key too, but for nothing else than the table.
	through := 0
	for _, s := range api.statements(t, "AWS::IAM::Policy") {
		if s.resources[0] == keyARN && fmt.Sprint(s.condition) == "map[StringEquals:map[kms:ViaService:dynamodb.us-east-1.amazonaws.com]]" {
			through++
		}
	}
	if through != 2 {
		t.Errorf("%d functions may use the key through DynamoDB, want 2", through)
	}
}

func TestATableThatWasRestoredTakesThePlaceOfTheOther(t *testing.T) {
	app := newApp()
	api, _ := NewAPIStack(app, "Pawl", &APIStackProps{
		StackProps:       awscdk.StackProps{Env: &awscdk.Environment{Region: jsii.String("us-east-1")}},
		LockServiceProps: LockServiceProps{Code: code},
		TableName:        "restored",
	})
	x := read(t, app, api)
	for id, f := range x.of("AWS::Lambda::Function") {
		if got := f.at("Environment", "Variables", "TABLE"); got != "restored" {
			t.Errorf("the table of %s is %v", id, got)
		}
	}
	for _, s := range x.statements(t, "AWS::IAM::Policy") {
		if s.actions[0] == "dynamodb:GetItem" && s.resources[0] != "arn:<AWS::Partition>:dynamodb:us-east-1:<AWS::AccountId>:table/restored" {
			t.Errorf("a function may use %v", s.resources)
		}
	}
}
