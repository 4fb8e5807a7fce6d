// Package infra puts Pawl into an AWS account: a stack with the table, which
// stays, and a stack with the API, which can be deleted and made again. Those
// with a CDK app of their own take the constructs: [NewTable] and
// [NewLockService].
//
//	caller ─▶ HTTP API ─▶ acquire ─┐
//	     route by route │          ├─▶ table ◀─ sweeper, only where there is no TTL
//	     IAM or JWT     └▶ rest  ──┘
//
// What AWS would refuse only while deploying, and what it would accept although
// it breaks a promise of the service, is refused here: constructors panic with
// an error that says why, as those of the CDK do.
//
// Limits: nothing here has a VPC, a web application firewall or a DNS zone.
// Metrics have no dimension for the deployment, so that those of two
// deployments in one account and Region add up.
package infra

import "github.com/aws/jsii-runtime-go"

// must panics with what is wrong in the configuration.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// str returns nil for "", which lets the CDK choose.
func str(s string) *string {
	if s == "" {
		return nil
	}
	return jsii.String(s)
}
