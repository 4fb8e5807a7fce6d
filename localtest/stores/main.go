// Command stores installs what tests run: a DynamoDB engine, PostgreSQL, MariaDB,
// Redis, an S3, AWS's Lambda emulator, and the Python tools that read the spec and
// the templates. With names it installs only those:
//
//	go run ./localtest/stores
//	go run ./localtest/stores dynamodb redis
//
// What is there already is left alone, and so is what a variable of package
// localtest names. Programs are built into .tools; databases are packages of
// Debian, which only root can install there. What it cannot get it lists, and
// fails only under CI: elsewhere the tests that need it are skipped.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/rigor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := localtest.Install(ctx, os.Stderr, os.Args[1:]...)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if rigor.CI() || ctx.Err() != nil || len(os.Args) > 1 {
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "stores: SKIPPED: the tests that need what is missing above will not run")
}
