package infra_test

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/infra"
)

// The lock service in a CDK app of one's own, and a role that may hold locks.
func ExampleNewLockService() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("Orders"), nil)
	locks := infra.NewLockService(stack, "Locks", &infra.LockServiceProps{
		Table:      infra.NewTable(stack, "LockTable", &infra.TableProps{}),
		Code:       "dist/api",
		Namespaces: []string{"orders"},
	})
	worker := awsiam.NewRole(stack, jsii.String("Worker"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("ecs-tasks.amazonaws.com"), nil),
	})
	worker.AddManagedPolicy(locks.Policies["orders/client"])
	awscdk.NewCfnOutput(stack, jsii.String("LocksURL"), &awscdk.CfnOutputProps{Value: locks.URL})
	app.Synth(nil)
}
