// Command retained keeps a deployment from losing the table with the locks. "make
// deploy" runs it, in the directory infra, with the synthesized stacks:
//
//	retained check ../cdk.out     before: fails if the update would replace the
//	                              table that is deployed, or leave it behind
//	retained protect ../cdk.out   after: sets a stack policy by which
//	                              CloudFormation itself refuses such an update,
//	                              whoever asks for it
//
// A table that was replaced is empty: every lease in force is unknown to the new
// one, and is granted again. Package infra has the way to migrate.
//
// It compares templates, and so does not see what was changed without
// CloudFormation. It takes credentials and Region as every AWS SDK does:
// AWS_PROFILE, not --profile.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: retained check|protect DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command, dir string) error {
	stacks, err := assembled(dir)
	if err != nil {
		return err
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	a := account{c}
	switch command {
	case "check":
		var errs []error
		for _, s := range stacks {
			deployed, err := a.template(ctx, s)
			if err != nil {
				return err
			}
			for _, reason := range lost(deployed, s.template) {
				errs = append(errs, fmt.Errorf("stack %s: %s", s.name, reason))
			}
		}
		if len(errs) > 0 {
			errs = append(errs, errors.New("nothing was deployed; go doc ./infra has the way to another table"))
		}
		return errors.Join(errs...)
	case "protect":
		for _, s := range stacks {
			if err := a.protect(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%q is neither check nor protect", command)
}
