// Command server runs the whole lock service on one machine: the compiled Lambda
// function behind a local API Gateway, on a DynamoDB-compatible engine.
//
//	go run ./localtest/server            as in AWS, as far as one machine can
//	go run ./localtest/server -memory    in memory; needs nothing but Go
//	go run ./localtest/server -token 'payments/acquire payments/release'
//	                                     prints a token for AUTH=jwt
//
// It takes its settings from the environment:
//
//	ADDR       where to listen; default 127.0.0.1:8080
//	DATA_DIR   where to keep the locks; default is in memory, until it stops
//	TABLE      name of the table; default "pawl", made if it is missing
//	AUTH       none (default), iam, or jwt
//	           iam: requests are signed with AWS_ACCESS_KEY_ID and
//	           AWS_SECRET_ACCESS_KEY, any that you make up, for AWS_REGION
//	           (default us-east-1)
//	           jwt: JWT_KEY is the file of an RSA key, made if it is missing
//	THROTTLE   on (default): more calls than AWS would let in are refused with
//	           429; off: for tests with more load than a deployment is made for
//
// and the variables of package localtest for the DynamoDB engine, and of
// functions/api for its limits. It logs why a call was refused at the gateway,
// where AWS tells nobody. It is for development and tests: it has no TLS and one
// machine's durability.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var s settings
	flag.BoolVar(&s.memory, "memory", false, "keep the locks in memory, without Lambda, gateway and DynamoDB")
	scopes := flag.String("token", "", "print a token with these `scopes` for AUTH=jwt, and exit")
	flag.Parse()
	s.getenv = os.Getenv
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := func() error {
		if *scopes != "" {
			return s.printToken(os.Stdout, *scopes)
		}
		return s.run(ctx, os.Stdout, os.Stderr)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pawl:", err)
		os.Exit(1)
	}
}

// settings are how the service is started.
type settings struct {
	memory bool
	getenv func(string) string
}

func (s settings) get(name, otherwise string) string {
	if v := s.getenv(name); v != "" {
		return v
	}
	return otherwise
}

// run serves until ctx ends. It prints one line to out when it is ready; the
// log of the service goes to log.
func (s settings) run(ctx context.Context, out, log io.Writer) error {
	// The address first: what takes long should not fail at the end.
	l, err := net.Listen("tcp", s.get("ADDR", "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	defer l.Close()
	service, err := s.start(ctx, log)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: service.handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	fmt.Fprintf(out, "pawl: listening on http://%s, store %s\n", l.Addr(), service.store)

	select {
	case err = <-failed:
	case <-ctx.Done():
		// Whoever waits for a lock is cut off after a moment, as by a gateway.
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err = server.Shutdown(grace); errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
	}
	return errors.Join(err, service.close())
}
