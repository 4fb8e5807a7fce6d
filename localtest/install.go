package localtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A need is a program that tests or the local server run.
type need struct {
	name    string
	takes   string // about how long it takes to get it
	find    func(context.Context) error
	missing error // of find, if there is none; anything else is for the user to put right
	get     func(context.Context) error
}

// needs are all that [Install] can get.
func needs() []need {
	all := []need{
		{
			name: "dynamodb",
			takes: "two cores compile it in about two minutes; to try the service without it:\n" +
				"  go run ./localtest/server -memory",
			find: findDynamoDB, missing: errNoDynamoDB, get: dynoxide.build,
		},
		{"s3", "it takes about a minute to compile", findS3, errNotInstalled, versitygw.build},
		{"lambda", "it takes some seconds to compile", lambdaEmulator.find, errNotInstalled, lambdaEmulator.build},
		{"redis", debianTakes, findRedis, errNoRedis, debian("redis-server")},
		{"postgres", debianTakes, findPostgres, errNoPostgres, debian("postgresql")},
		{"mariadb", debianTakes, findMariaDB, errNoMariaDB, debian("mariadb-server-core", "mariadb-client-core")},
	}
	for _, list := range pythonRequirements {
		p := pythonTool(list)
		all = append(all, need{listName(list), "pip takes about half a minute", p.find, errNotInstalled, p.build})
	}
	return all
}

// Install gets what is missing of the programs that are named, or of all: into
// .tools, or by the packages of Debian where this process may do that. It says to
// log what it does, and for about how long. What it cannot get is an error that
// says what to provide instead; the rest is there all the same.
func Install(ctx context.Context, log io.Writer, names ...string) error {
	all, errs := needs(), []error(nil)
	for _, name := range names {
		if !slices.ContainsFunc(all, func(n need) bool { return n.name == name }) {
			return fmt.Errorf("localtest: %q is not known: want one of %s", name, strings.Join(known(), ", "))
		}
	}
	for _, n := range all {
		if len(names) > 0 && !slices.Contains(names, n.name) {
			continue
		}
		err := n.find(ctx)
		if errors.Is(err, n.missing) {
			fmt.Fprintf(log, "localtest: installing %s, once; %s\n", n.name, n.takes)
			if failed := n.get(ctx); failed != nil {
				err = fmt.Errorf("%w. It could not be installed: %w", err, failed)
			} else {
				err = n.find(ctx)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("localtest: %s: %w", n.name, err))
		}
	}
	return errors.Join(errs...)
}

// known are the names that [Install] takes.
func known() (names []string) {
	for _, n := range needs() {
		names = append(names, n.name)
	}
	return names
}
