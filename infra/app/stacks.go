package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/pawl-lock/pawl/infra"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// stackName keeps the stack of a table from taking the place of another stack.
var stackName = regexp.MustCompile(`^PawlTable[A-Za-z0-9-]{0,100}$`)

// onlyForNew are the parameters of a table that is to be made.
var onlyForNew = []string{
	"table-stack", "table-name", "consistency", "replicas", "replica-key-arns", "witness", "aws-managed-key",
	"sweep-minutes", "sweep-rate",
}

// stacks makes the stacks of an app. The functions are in directories of dist.
func stacks(app awscdk.App, p *parameters, dist string) error {
	env := awscdk.StackProps{Env: &awscdk.Environment{
		Account: optional(os.Getenv("CDK_DEFAULT_ACCOUNT")),
		Region:  optional(cmp.Or(p.text("region"), os.Getenv("CDK_DEFAULT_REGION"))),
	}}
	table := &infra.TableStackProps{
		StackProps: env,
		TableProps: infra.TableProps{
			Name:          p.text("table-name"),
			Consistency:   infra.Consistency(p.text("consistency")),
			Replicas:      p.list("replicas"),
			Witness:       p.text("witness"),
			AWSManagedKey: p.yes("aws-managed-key"),
		},
		KeyARN: p.text("table-key-arn"),
	}
	sweeper := &infra.SweeperStackProps{
		StackProps: env,
		SweeperProps: infra.SweeperProps{
			Code:             filepath.Join(dist, "sweeper"),
			Every:            p.duration("sweep-minutes", time.Minute),
			Rate:             p.number("sweep-rate"),
			LogRetentionDays: p.integer("log-retention-days"),
			AlarmTopicARN:    p.text("alarm-topic-arn"),
		},
	}
	api := p.api(env, dist)
	p.replicaKeys(&table.TableProps)
	tableStack := cmp.Or(p.text("table-stack"), "PawlTable")
	if !stackName.MatchString(tableStack) {
		p.wrong("table-stack", "is %q, want the name of a stack that starts with PawlTable", tableStack)
	}
	switch {
	case api.TableName != "":
		p.exclude("pawl:table names a table that exists", onlyForNew...)
	case table.Consistency != infra.Strong:
		p.exclude("only a table with strong consistency has a sweeper", "sweep-minutes", "sweep-rate")
	}
	if err := p.err(); err != nil {
		return err
	}
	if api.TableName == "" {
		_, api.Table = infra.NewTableStack(app, tableStack, table)
		if table.Consistency == infra.Strong {
			sweeper.Table = api.Table
			infra.NewSweeperStack(app, "PawlSweeper", sweeper)
		}
	}
	infra.NewAPIStack(app, "Pawl", api)
	return nil
}

func (p *parameters) api(env awscdk.StackProps, dist string) *infra.APIStackProps {
	api := &infra.APIStackProps{
		StackProps: env,
		TableName:  p.text("table"),
		KeyARN:     p.text("table-key-arn"),
		LockServiceProps: infra.LockServiceProps{
			Code:             filepath.Join(dist, "api"),
			Rules:            p.rules(),
			Acquire:          infra.FunctionProps{Memory: p.integer("memory-mb"), Concurrency: p.integer("acquire-concurrency")},
			Rest:             infra.FunctionProps{Memory: p.integer("memory-mb"), Concurrency: p.integer("concurrency")},
			Namespaces:       p.list("namespaces"),
			Stage:            p.text("stage"),
			LogRetentionDays: p.integer("log-retention-days"),
			Tracing:          p.yes("tracing"),
			AlarmTopicARN:    p.text("alarm-topic-arn"),
		},
	}
	jwt := infra.JWT{Issuer: p.text("jwt-issuer"), Audience: p.list("jwt-audience"), ScopeClaim: p.text("jwt-scope-claim")}
	p.together("jwt-issuer", "jwt-audience")
	if jwt.Issuer != "" {
		api.JWT = &jwt
	} else {
		p.exclude("there is no pawl:jwt-issuer", "jwt-scope-claim")
	}
	p.together("domain", "certificate-arn")
	if name := p.text("domain"); name != "" {
		api.Domain = &infra.Domain{Name: name, CertificateARN: p.text("certificate-arn")}
	}
	p.text("certificate-arn")
	p.together("rate", "burst")
	if t := (infra.Throttle{Rate: p.number("rate"), Burst: p.integer("burst")}); t != (infra.Throttle{}) {
		api.Throttles = map[string]infra.Throttle{"": t}
	}
	return api
}

// rules are the limits. The end of a quarantine stays where it is when limits
// change later, so that it must be given with the time of the restore.
func (p *parameters) rules() protocol.Rules {
	p.together("restored-at-ms", "quarantine-end-ms")
	return protocol.Rules{
		MaxTTL:        p.duration("max-ttl-ms", time.Millisecond),
		MaxLockDelay:  p.duration("max-lock-delay-ms", time.Millisecond),
		Skew:          p.duration("skew-ms", time.Millisecond),
		RestoredAt:    p.instant("restored-at-ms"),
		QuarantineEnd: p.instant("quarantine-end-ms"),
	}
}

// replicaKeys pairs the replicas with their keys.
func (p *parameters) replicaKeys(table *infra.TableProps) {
	arns := p.list("replica-key-arns")
	if len(arns) == 0 {
		return
	}
	if len(arns) != len(table.Replicas) {
		p.wrong("replica-key-arns", "has %d keys for %d replicas", len(arns), len(table.Replicas))
		return
	}
	table.ReplicaKeyARNs = make(map[string]string)
	for i, region := range table.Replicas {
		table.ReplicaKeyARNs[region] = arns[i]
	}
}

// optional returns nil for what only the deployment knows.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
