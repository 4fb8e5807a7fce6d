package localtest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawl-lock/pawl/localtest/process"
)

// An engine is a way to run DynamoDB on this machine.
type engine struct {
	name string
	wait time.Duration // how long it may take until it answers
	run  func(port int) (*process.Process, error)
}

// start runs the engine on a port of pick.
func (e *engine) start(ctx context.Context, pick func() (int, error)) (*DynamoDB, error) {
	d, err := onFreePort(pick, func(port int) (*DynamoDB, error) { return e.startOn(ctx, port) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	return d, nil
}

func (e *engine) startOn(ctx context.Context, port int) (*DynamoDB, error) {
	p, err := e.run(port)
	if err != nil {
		return nil, err
	}
	d := &DynamoDB{Endpoint: fmt.Sprintf("http://127.0.0.1:%d", port), Name: e.name, stop: sync.OnceValue(p.Stop)}
	waiting, cancel := context.WithTimeout(ctx, e.wait)
	defer cancel()
	if err = p.Ready(waiting, d.answers); err == nil {
		err = probe(ctx, dynamodb.New(d.Options()))
	}
	// Whoever has the port instead may well have answered, and passed the probe.
	if p.HasExited() {
		return nil, p.Ended()
	}
	if err != nil {
		_ = p.Stop() // err says why
		return nil, err
	}
	return d, nil
}

// answers fails until there is an answer to HTTP, any. A connection alone says
// nothing: Docker accepts it before the engine runs.
func (d *DynamoDB) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Endpoint, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
