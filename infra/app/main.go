// Command app is the CDK app that "make synth" and "make deploy" run, in the
// directory infra: the table stack PawlTable, under strong consistency the
// sweeper's stack PawlSweeper, and the API stack Pawl.
//
// Its parameters are context, best kept in cdk.json so that no deployment
// forgets one; a name that starts with "pawl:" and is none of these is refused:
//
//	pawl:region             Region; default: that of the credentials
//	pawl:table              name of a table that exists, for example one that was
//	                        restored: there is no table stack then
//	pawl:table-key-arn      customer key of that table, or of the one to make
//	pawl:max-ttl-ms, pawl:max-lock-delay-ms, pawl:skew-ms
//	                        limits; see package lease, Rules
//	pawl:restored-at-ms, pawl:quarantine-end-ms
//	                        when the table was restored, and until when nothing
//	                        is granted: see package infra
//	pawl:namespaces         namespaces to make IAM policies for, up to 100;
//	                        default "default"
//	pawl:jwt-issuer, pawl:jwt-audience
//	                        accept tokens instead of IAM, with
//	pawl:jwt-scope-claim    one more claim that has scopes, beside scope and scp
//	pawl:stage              name of the stage; default none
//	pawl:domain, pawl:certificate-arn
//	                        a name of one's own
//	pawl:rate, pawl:burst   throttle of renew, of release and of read, each
//	pawl:memory-mb          of each function
//	pawl:acquire-concurrency, pawl:concurrency
//	                        reserved for acquire and for the rest, default 100
//	                        each. An account that has 10 in all takes -3 and -7,
//	                        which reserve nothing; see package infra, FunctionProps
//	pawl:log-retention-days one of the numbers that CloudWatch knows; default 90
//	pawl:tracing            "true": X-Ray
//	pawl:alarm-topic-arn    SNS topic that hears of alarms
//
// What is for a new table is decided once: what would make another table of the
// one that is there, "make deploy" refuses. Package infra has the way to migrate.
//
//	pawl:table-stack        its stack, for a second one; default PawlTable
//	pawl:table-name         its name; default: CloudFormation chooses
//	pawl:aws-managed-key    "true": a key in the account that AWS manages
//	pawl:consistency        "strong": several Regions, with
//	pawl:replicas           the others, separated by commas, and
//	pawl:replica-key-arns   their keys, in the same order, and
//	pawl:witness            perhaps a Region that only witnesses
//	pawl:sweep-minutes      from sweep to sweep, where there is no TTL: 15 to 720,
//	                        default 60
//	pawl:sweep-rate         requests a second, default 50: a sweep retires at most
//	                        830 times as many locks, so a million a day
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/infra"
)

func main() {
	if err := synth(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func synth() (err error) {
	defer jsii.Close()
	defer func() { // the CDK and package infra say so what they refuse
		if reason := recover(); reason != nil {
			refused, ok := reason.(error)
			if !ok {
				refused = fmt.Errorf("%v", reason)
			}
			err = named(refused)
		}
	}()
	context := make(map[string]any)
	props := &awscdk.AppProps{AnalyticsReporting: jsii.Bool(false), Context: &context}
	if os.Getenv("CDK_OUTDIR") == "" { // without the CDK's command line, which reads cdk.json and says where to write
		props.Outdir = jsii.String(filepath.Join("..", "cdk.out"))
		if context, err = fileContext("cdk.json"); err != nil {
			return err
		}
	}
	maps.Copy(context, infra.Flags())
	context["@aws-cdk/core:validateAgainstDefaultRules"] = true
	app := awscdk.NewApp(props)
	given, _ := app.Node().GetAllContext(nil).(map[string]any)
	if err := stacks(app, newParameters(given), filepath.Join("..", "dist")); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}

// fileContext returns the context in the configuration of the CDK.
func fileContext(path string) (map[string]any, error) {
	var config struct{ Context map[string]any }
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	context := make(map[string]any)
	maps.Copy(context, config.Context)
	if errors.Is(err, fs.ErrNotExist) {
		return context, nil
	}
	return context, err
}
