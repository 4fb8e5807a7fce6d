package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// The tables.
const (
	before = "locks"
	after  = "locks-restored"
	untold = "locks-untold"
)

type item = map[string]types.AttributeValue

// ttl is short, so that what the backup says is held has run out at the end.
const ttl = 5 * time.Second

// A rehearsal is a DynamoDB engine and a program that serves on it.
type rehearsal struct {
	db  *localtest.DynamoDB
	dir string // of the program
}

func (r *rehearsal) client() *dynamodb.Client { return dynamolease.NewClientFrom(r.db.Options()) }

func (r *rehearsal) build(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "pawl-rehearsal-"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", r.program(), "github.com/pawl-lock/pawl/localtest/server")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, text)
	}
	return nil
}

func (r *rehearsal) program() string { return filepath.Join(r.dir, "server") }

// items returns a copy of a table.
func (r *rehearsal) items(ctx context.Context, table string) ([]item, error) {
	out, err := r.client().Scan(ctx, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// remove cuts a table off. On AWS a policy does that, and the table stays.
func (r *rehearsal) remove(ctx context.Context, table string) error {
	_, err := r.client().DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
	return err
}

// restore makes a table of a copy.
func (r *rehearsal) restore(ctx context.Context, table string, items []item) error {
	if err := dynamolease.CreateTable(ctx, r.client(), table); err != nil {
		return err
	}
	for _, item := range items {
		if _, err := r.client().PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			return err
		}
	}
	return nil
}

// A service is a server on one table, and a client of it.
type service struct {
	*httplease.Client
	process *process.Talk
}

// serve starts a server and waits until it listens.
func (r *rehearsal) serve(ctx context.Context, table string, rules protocol.Rules) (*service, error) {
	cmd := exec.Command(r.program())
	cmd.Env = append(os.Environ(), "ADDR=127.0.0.1:0", "TABLE="+table, "AUTH=none", "DYNAMODB_ENDPOINT="+r.db.Endpoint)
	for name, value := range (settings.API{Rules: rules}).Environ() {
		if value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	p, err := process.StartTalk(cmd)
	if err != nil {
		return nil, err
	}
	for {
		line, err := p.Hear(ctx)
		if err != nil {
			_ = p.Stop() // err says why
			return nil, fmt.Errorf("the server did not start: %w", err)
		}
		if _, rest, ok := strings.Cut(line, "listening on "); ok {
			url, _, _ := strings.Cut(rest, ",")
			return &service{Client: &httplease.Client{URL: url}, process: p}, nil
		}
	}
}

func (s *service) stop() { _ = s.process.Stop() } // it may have ended

func name(lock string) lease.Name { return lease.Name{Namespace: "default", Lock: lock} }

func (s *service) acquire(ctx context.Context, lock string) (lease.Lease, error) {
	return s.Client.Acquire(ctx, lease.AcquireRequest{Name: name(lock), TTL: ttl, Holder: "rehearsal"})
}

func (s *service) renew(ctx context.Context, l lease.Lease) (lease.Lease, error) {
	return s.Client.Renew(ctx, lease.RenewRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token, TTL: ttl})
}

func (s *service) release(ctx context.Context, l lease.Lease) error {
	_, err := s.Client.Release(ctx, lease.ReleaseRequest{Name: l.Name, LeaseID: l.ID, Token: l.Token})
	return err
}
