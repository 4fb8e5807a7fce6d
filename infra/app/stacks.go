package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/pawl-lock/pawl/infra"
	"github.com/pawl-lock/pawl/pkg/lease"
)

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
		Sweeper: infra.SweeperProps{
			Code:             filepath.Join(dist, "sweeper"),
			LogRetentionDays: p.integer("log-retention-days"),
			AlarmTopicARN:    p.text("alarm-topic-arn"),
		},
	}
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
	if jwt.Issuer != "" || jwt.Audience != nil || jwt.ScopeClaim != "" {
		api.JWT = &jwt
	}
	if name, certificate := p.text("domain"), p.text("certificate-arn"); name+certificate != "" {
		api.Domain = &infra.Domain{Name: name, CertificateARN: certificate}
	}
	if t := (infra.Throttle{Rate: p.number("rate"), Burst: p.integer("burst")}); t != (infra.Throttle{}) {
		api.Throttles = map[string]infra.Throttle{"": t}
	}
	p.replicaKeys(&table.TableProps)
	if err := p.err(); err != nil {
		return err
	}
	if api.TableName == "" {
		_, api.Table = infra.NewTableStack(app, "PawlTable", table)
	}
	infra.NewAPIStack(app, "Pawl", api)
	return nil
}

func (p *parameters) rules() lease.Rules {
	r := lease.Rules{
		MaxTTL:       time.Duration(p.integer("max-ttl-ms")) * time.Millisecond,
		MaxLockDelay: time.Duration(p.integer("max-lock-delay-ms")) * time.Millisecond,
		Skew:         time.Duration(p.integer("skew-ms")) * time.Millisecond,
	}
	if at := p.integer("restored-at-ms"); at != 0 {
		r.RestoredAt = time.UnixMilli(int64(at))
	}
	if end := p.integer("quarantine-end-ms"); end != 0 {
		r.QuarantineEnd = time.UnixMilli(int64(end))
	}
	return r
}

// replicaKeys pairs the replicas with their keys.
func (p *parameters) replicaKeys(table *infra.TableProps) {
	arns := p.list("replica-key-arns")
	if len(arns) == 0 {
		return
	}
	if len(arns) != len(table.Replicas) {
		p.errs = append(p.errs, fmt.Errorf("%d replicas have %d keys", len(table.Replicas), len(arns)))
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
