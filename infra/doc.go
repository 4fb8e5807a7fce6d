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
// an error that joins a [FieldError] for each wrong field.
//
// # Another table
//
// A table that is replaced is empty: every lease in force is unknown to the new
// one, and is granted again. Its name, its consistency and its Regions are
// therefore decided once, and "make deploy" refuses an update that would change
// them or send the API to another table. A stack policy refuses it too, whoever
// asks for it; in an app of one's own, the command infra/retained does both.
//
// To move to a table in several Regions, or with another name:
//
//  1. Cut off the old table with a resource policy that denies dynamodb:UpdateItem
//     to everyone. From now on nothing is granted.
//  2. In infra/cdk.json: "pawl:table-stack": "PawlTable2", and what the new table
//     is to be, or "pawl:table", if you have made it by hand;
//     "pawl:restored-at-ms": the time after the first step;
//     "pawl:quarantine-end-ms": that time, and the longest TTL, lock delay and
//     skew that were allowed, together, but at least three minutes.
//  3. "make deploy". It makes the new table beside the old one. The API answers
//     "quarantine" until no lease of the old table can be in force, and then
//     grants larger tokens than that table ever did. Both times stay set.
//  4. Delete the old stack and its table by hand, when nobody needs them.
//
// # IAM and JWT
//
// Who changes from IAM to JWT deletes the IAM policies in the same update, and so
// does "make destroy". AWS does not delete a policy that is attached to a role:
// detach them first, or the update fails and is rolled back. Callers of the other
// kind are refused from then on.
//
// # Limits
//
// Nothing here has a VPC, a web application firewall or a DNS zone. A stack has
// the metrics of one lock service: two in one stack would share them. The sweeper
// retires at most a million locks a day unless it is told to do more. Tests
// compare templates with what AWS documents; none of them deploys.
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
