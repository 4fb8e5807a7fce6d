package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	functions "github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/infra/routes"
	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/gateway"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

// A service is everything behind the listener.
type service struct {
	handler http.Handler
	store   string // what keeps the locks, for people to read
	closers []func() error
}

// close ends what the service consists of, the last first.
func (s *service) close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// start starts everything, or nothing.
func (s settings) start(ctx context.Context, log io.Writer) (_ *service, err error) {
	if s.memory {
		if a := s.get("AUTH", "none"); a != "none" {
			return nil, fmt.Errorf("AUTH=%s: there is no gateway to check it with -memory", a)
		}
		return &service{
			handler: &httplease.Handler{
				Service: new(memlease.Store), Log: slog.New(slog.NewJSONHandler(log, nil)), Caller: httplease.Anyone,
			},
			store: "memory",
		}, nil
	}
	auth, authorizer, err := s.authorizer()
	if err != nil {
		return nil, err
	}
	throttled, err := s.throttled()
	if err != nil {
		return nil, err
	}
	service := new(service)
	defer func() {
		if err != nil {
			err = errors.Join(err, service.close())
		}
	}()
	bootstrap, err := service.build(ctx)
	if err != nil {
		return nil, err
	}
	if err := localtest.Install(ctx, log, "dynamodb"); err != nil {
		return nil, err
	}
	db, err := localtest.StartDynamoDB(ctx, s.getenv("DATA_DIR"))
	if err != nil {
		return nil, err
	}
	service.closers = append(service.closers, db.Close)
	service.store = db.Name
	table := s.get("TABLE", "pawl")
	if err := dynamolease.CreateTable(ctx, dynamolease.NewClientFrom(db.Options()), table); err != nil {
		return nil, err
	}
	env, err := s.functionEnv(ctx, db, functions.API{Table: table, Auth: auth, Metrics: "Pawl/local"})
	if err != nil {
		return nil, err
	}
	if service.handler, err = service.gateway(authorizer, throttled, bootstrap, env, log); err != nil {
		return nil, err
	}
	return service, nil
}

// throttled reports whether the gateway refuses what it would refuse in AWS.
func (s settings) throttled() (bool, error) {
	switch v := s.get("THROTTLE", "on"); v {
	case "on", "off":
		return v == "on", nil
	default:
		return false, fmt.Errorf("THROTTLE is %q, want on or off", v)
	}
}

// build compiles the function as it is deployed, but for this machine.
func (s *service) build(ctx context.Context) (bootstrap string, err error) {
	dir, err := os.MkdirTemp("", "pawl-")
	if err != nil {
		return "", err
	}
	s.closers = append(s.closers, func() error { return os.RemoveAll(dir) })
	bootstrap = filepath.Join(dir, "bootstrap")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc",
		"-ldflags", "-s -w", "-o", bootstrap, "github.com/pawl-lock/pawl/functions/api")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the function: %w\n%s", err, text)
	}
	return bootstrap, nil
}

// functionEnv is what the stacks and Lambda set for the function in AWS.
func (s settings) functionEnv(ctx context.Context, db *localtest.DynamoDB, api functions.API) ([]string, error) {
	options := db.Options()
	key, err := options.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials for DynamoDB: %w", err)
	}
	env := []string{
		"AWS_REGION=" + options.Region,
		"AWS_ENDPOINT_URL_DYNAMODB=" + db.Endpoint,
		"AWS_ACCESS_KEY_ID=" + key.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + key.SecretAccessKey,
		"AWS_SESSION_TOKEN=" + key.SessionToken,
	}
	for name, value := range api.Environ() {
		env = append(env, name+"="+value)
	}
	for _, name := range functions.Limits {
		env = append(env, name+"="+s.getenv(name))
	}
	return env, nil
}

// gateway puts the function behind the routes that are deployed, as the template
// of the API stack has them: twice, so that what waits for locks never takes the
// processes that holders need.
func (s *service) gateway(a gateway.Authorizer, throttled bool, bootstrap string, env []string, log io.Writer) (http.Handler, error) {
	deployed, err := routes.Deployed()
	if err != nil {
		return nil, err
	}
	// AWS tells nobody why it does not like a signature; here someone is learning.
	refusals := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g := &gateway.Gateway{Authorizer: a, Log: refusals}
	lambdas := make(map[routes.Function]*gateway.Lambda)
	for _, r := range deployed {
		l := lambdas[r.Function]
		if l == nil {
			l = &gateway.Lambda{
				Bootstrap:   bootstrap,
				Env:         append(slices.Clone(env), "AWS_LAMBDA_FUNCTION_NAME="+r.ID),
				Concurrency: r.Concurrency,
				Timeout:     r.Timeout,
				Log:         log,
			}
			lambdas[r.Function] = l
			s.closers = append(s.closers, l.Close)
		}
		route := gateway.Route{Key: r.Key, Public: r.Public, Lambda: l}
		if throttled {
			route.Throttle = &gateway.Throttle{Rate: r.Rate, Burst: r.Burst}
		}
		g.Routes = append(g.Routes, route)
	}
	return g, nil
}
