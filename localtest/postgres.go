package localtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/pawl-lock/pawl/localtest/process"
)

// errNoPostgres tells what to provide; a PostgreSQL that is there and fails is
// not this error.
var errNoPostgres = errors.New("no PostgreSQL: set POSTGRES_DSN to the address of one " +
	"where databases may be created, or PG_BIN to the directory of initdb and postgres, " +
	"or install the package postgresql (go run ./localtest/stores does, as root on Debian)")

func findPostgres(context.Context) error {
	if os.Getenv("POSTGRES_DSN") != "" {
		return nil
	}
	_, err := postgresBin(debianPostgres)
	return err
}

var postgresForTest = sync.OnceValues(func() (*Database, error) {
	return StartPostgres(context.Background())
})

// PostgresForTest returns how the driver pgx reaches a new database on a
// PostgreSQL that all tests of this test binary share; the database ends with
// the test and the server with the binary. Where there is no PostgreSQL to be
// had it skips the test, but under CI it fails.
func PostgresForTest(t testing.TB) (dsn string) {
	t.Helper()
	d, err := postgresForTest()
	skipWithout(t, err, errNoPostgres)
	return withDatabase(d.DSN, d.forTest(t, "DROP DATABASE %s WITH (FORCE)"))
}

// withDatabase returns dsn with another database.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name // the last one counts
}

// StartPostgres returns the PostgreSQL that POSTGRES_DSN names, or starts one
// with the programs in PG_BIN, the newest that Debian has installed, or those in
// PATH. What it starts listens on a socket in a temporary directory, keeps its
// data there and syncs nothing. It runs until [Database.Close] or the end of this
// process; ctx is for starting it.
func StartPostgres(ctx context.Context) (*Database, error) {
	d := &Database{DSN: os.Getenv("POSTGRES_DSN"), driver: "pgx"}
	if d.DSN != "" {
		if err := d.answers(ctx); err != nil {
			return nil, fmt.Errorf("localtest: POSTGRES_DSN: %w", err)
		}
		return d, nil
	}
	if err := d.startPostgres(ctx); err != nil {
		return nil, fmt.Errorf("localtest: %w", err)
	}
	return d, nil
}

func (d *Database) startPostgres(ctx context.Context) error {
	bin, err := postgresBin(debianPostgres)
	if err != nil {
		return err
	}
	h, err := newHome()
	if err != nil {
		return err
	}
	data := filepath.Join(h.dir, "data")
	if _, err := process.Run(ctx, h.command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust",
		"-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")); err != nil {
		return errors.Join(err, os.RemoveAll(h.dir))
	}
	d.DSN = "host=" + h.dir + " port=5432 user=postgres dbname=postgres sslmode=disable"
	return h.serve(ctx, d, "data/postmaster.pid", h.command(filepath.Join(bin, "postgres"), "-D", data,
		"-k", h.dir, "-p", "5432", "-c", "listen_addresses=", "-c", "max_connections=300",
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"))
}

// debianPostgres is where Debian keeps its versions, none of which is in PATH.
const debianPostgres = "/usr/lib/postgresql"

func postgresBin(debian string) (string, error) {
	if bin := os.Getenv("PG_BIN"); bin != "" {
		if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
			return "", fmt.Errorf("PG_BIN: %w", err)
		}
		return bin, nil
	}
	newest, bin := 0, ""
	versions, _ := filepath.Glob(filepath.Join(debian, "*", "bin", "initdb")) // the pattern is right
	for _, path := range versions {
		dir := filepath.Dir(path)
		major, _, _ := strings.Cut(filepath.Base(filepath.Dir(dir)), ".")
		if v, err := strconv.Atoi(major); err == nil && v > newest {
			newest, bin = v, dir
		}
	}
	if bin != "" {
		return bin, nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errNoPostgres
	}
	return filepath.Dir(path), nil
}
