package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
)

// A stack is one that was synthesized.
type stack struct {
	name, region string // a region of "" is that of the credentials
	template     template
}

// assembled reads what the CDK wrote.
func assembled(dir string) (stacks []stack, err error) {
	var manifest struct {
		Artifacts map[string]struct {
			Type, Environment string
			Properties        struct{ StackName, TemplateFile string }
		}
	}
	if err := readJSON(filepath.Join(dir, "manifest.json"), &manifest); err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(manifest.Artifacts)) {
		a := manifest.Artifacts[id]
		if a.Type != "aws:cloudformation:stack" {
			continue
		}
		s := stack{name: cmp.Or(a.Properties.StackName, id)}
		if region := a.Environment[strings.LastIndex(a.Environment, "/")+1:]; region != "unknown-region" {
			s.region = region
		}
		if err := readJSON(filepath.Join(dir, a.Properties.TemplateFile), &s.template); err != nil {
			return nil, err
		}
		stacks = append(stacks, s)
	}
	if len(stacks) == 0 {
		return nil, fmt.Errorf("%s has no stacks", dir)
	}
	return stacks, nil
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// An account is where stacks are deployed.
type account struct{ aws.Config }

func (a account) client(s stack) *cloudformation.Client {
	return cloudformation.NewFromConfig(a.Config, func(o *cloudformation.Options) { o.Region = cmp.Or(s.region, o.Region) })
}

// template returns what of a stack is deployed, which is nothing if it was never
// made.
func (a account) template(ctx context.Context, s stack) (t template, err error) {
	c := a.client(s)
	found, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &s.name})
	var problem smithy.APIError
	if errors.As(err, &problem) && problem.ErrorCode() == "ValidationError" &&
		strings.Contains(problem.ErrorMessage(), "does not exist") {
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("stack %s: %w", s.name, err)
	}
	if len(found.Stacks) != 1 {
		return t, fmt.Errorf("stack %s: there are %d", s.name, len(found.Stacks))
	}
	switch found.Stacks[0].StackStatus {
	case types.StackStatusRollbackComplete, types.StackStatusReviewInProgress, types.StackStatusDeleteComplete:
		return t, nil // it could not be made, or is not yet
	}
	out, err := c.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &s.name, TemplateStage: types.TemplateStageOriginal})
	if err != nil {
		return t, fmt.Errorf("stack %s: %w", s.name, err)
	}
	if err := json.Unmarshal([]byte(aws.ToString(out.TemplateBody)), &t); err != nil {
		return t, fmt.Errorf("stack %s: the template that is deployed is not one of the CDK's: %w", s.name, err)
	}
	return t, nil
}

// protect sets the stack policy of a stack that has a table.
func (a account) protect(ctx context.Context, s stack) error {
	ids := s.template.tables()
	if len(ids) == 0 {
		return nil
	}
	if _, err := a.client(s).SetStackPolicy(ctx, &cloudformation.SetStackPolicyInput{
		StackName: &s.name, StackPolicyBody: aws.String(stackPolicy(ids)),
	}); err != nil {
		return fmt.Errorf("stack %s: its policy could not be set, so that an update can still replace the table: %w", s.name, err)
	}
	return nil
}

// stackPolicy lets updates do everything but take a table away. CloudFormation
// denies what no statement allows.
func stackPolicy(ids []string) string {
	var tables []string
	for _, id := range ids {
		tables = append(tables, "LogicalResourceId/"+id)
	}
	text, _ := json.Marshal(map[string]any{"Statement": []any{ // it has nothing but texts
		map[string]any{"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
		map[string]any{"Effect": "Deny", "Principal": "*", "Action": []string{"Update:Replace", "Update:Delete"}, "Resource": tables},
	}})
	return string(text)
}
