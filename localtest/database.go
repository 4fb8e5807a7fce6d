package localtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/localtest/process"
	"github.com/pawl-lock/pawl/localtest/rigor"
)

// A Database is a running database server.
type Database struct {
	// DSN is how its driver reaches it: pgx, or go-sql-driver/mysql.
	DSN string

	driver string // as database/sql knows it
	stop   func() error
}

// Close ends a server that was started here, and its data. It is an error if
// that had ended by itself.
func (d *Database) Close() error {
	if d.stop == nil {
		return nil
	}
	if err := d.stop(); err != nil {
		return fmt.Errorf("localtest: %w", err)
	}
	return nil
}

// answers fails until the server lets us in.
func (d *Database) answers(ctx context.Context) error {
	db, err := sql.Open(d.driver, d.DSN)
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), db.Close())
}

// forTest makes a database that the test has to itself, and returns its name.
func (d *Database) forTest(t testing.TB, drop string) (name string) {
	t.Helper()
	db, err := sql.Open(d.driver, d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	name = "pawl_" + strings.ToLower(rand.Text())
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(errors.Join(err, db.Close()))
	}
	t.Cleanup(func() {
		_, err := db.Exec(fmt.Sprintf(drop, name))
		if err = errors.Join(err, db.Close()); err != nil {
			t.Errorf("left behind database %s: %v", name, err)
		}
	})
	return name
}

// skipWithout ends a test that lacks a server. It fails if err is something else
// than missing.
func skipWithout(t testing.TB, err, missing error) {
	t.Helper()
	if errors.Is(err, missing) {
		rigor.Lacking(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A home is the directory of one server, whose programs run as a user who owns
// it: database servers refuse to run as root.
type home struct {
	dir   string
	owner []string // how setpriv makes us that user; nil if we are not root
}

func newHome() (h home, err error) {
	if h.dir, err = os.MkdirTemp("", "pawl-"); err != nil || os.Geteuid() != 0 {
		return h, err
	}
	// Whatever is installed, there is a user nobody; initdb insists on a name.
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return h, err
	}
	h.owner = []string{"--reuid", nobody.Uid, "--regid", nobody.Gid, "--clear-groups"}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		return h, err
	}
	return h, os.Chown(h.dir, uid, -1)
}

// command returns a program that runs as the owner of h.
func (h home) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	if h.owner != nil {
		cmd = exec.Command("setpriv", slices.Concat(h.owner, []string{"--", program}, args)...)
	}
	cmd.Dir = h.dir
	return cmd
}

// serve starts a server that keeps its process id in a file, and waits until d
// answers. When the server has ended, or we have, so does the other, and the
// directory is removed.
func (h home) serve(ctx context.Context, d *Database, pidFile string, server *exec.Cmd) error {
	// A PostgreSQL that is killed leaves its shared memory behind.
	p, err := process.Start(server, "/bin/sh", "-c", `
		pid=$(head -n 1 "$1") && while kill -s QUIT "$pid"; do sleep 0.05; done
		rm -rf "$2"`, "sh", filepath.Join(h.dir, pidFile), h.dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.Ready(ctx, d.answers); err != nil {
		_ = p.Stop() // err says why
		return err
	}
	d.stop = sync.OnceValue(p.Stop)
	return nil
}
