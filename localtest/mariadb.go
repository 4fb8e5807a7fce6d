package localtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/pawl-lock/pawl/localtest/process"
)

// errNoMariaDB tells what to provide; a MariaDB that is there and fails is not
// this error.
var errNoMariaDB = errors.New("no MariaDB: set MYSQL_DSN to the address of one, or of a MySQL, " +
	"where databases may be created, or install the packages mariadb-server-core and mariadb-client-core " +
	"(go run ./localtest/stores does, as root on Debian)")

func findMariaDB(context.Context) error {
	if os.Getenv("MYSQL_DSN") != "" {
		return nil
	}
	_, err := mariaDBPrograms()
	return err
}

var mariaDBForTest = sync.OnceValues(func() (*Database, error) {
	return StartMariaDB(context.Background())
})

// MariaDBForTest returns how the driver mysql reaches a new database on a
// MariaDB that all tests of this test binary share; the database ends with the
// test and the server with the binary. Where there is no MariaDB to be had it
// skips the test, but under CI it fails.
func MariaDBForTest(t testing.TB) (dsn string) {
	t.Helper()
	d, err := mariaDBForTest()
	skipWithout(t, err, errNoMariaDB)
	c, err := mysql.ParseDSN(d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	c.DBName = d.forTest(t, "DROP DATABASE %s")
	return c.FormatDSN()
}

// StartMariaDB returns the MySQL or MariaDB that MYSQL_DSN names, or starts the
// MariaDB in PATH. What it starts listens on a socket in a temporary directory,
// keeps its data there and syncs nothing. It runs until [Database.Close] or the
// end of this process; ctx is for starting it.
func StartMariaDB(ctx context.Context) (*Database, error) {
	d := &Database{DSN: os.Getenv("MYSQL_DSN"), driver: "mysql"}
	if d.DSN != "" {
		if err := d.answers(ctx); err != nil {
			return nil, fmt.Errorf("localtest: MYSQL_DSN: %w", err)
		}
		return d, nil
	}
	if err := d.startMariaDB(ctx); err != nil {
		return nil, fmt.Errorf("localtest: %w", err)
	}
	return d, nil
}

func (d *Database) startMariaDB(ctx context.Context) error {
	programs, err := mariaDBPrograms()
	if err != nil {
		return err
	}
	h, err := newHome()
	if err != nil {
		return err
	}
	data, socket := filepath.Join(h.dir, "data"), filepath.Join(h.dir, "socket")
	if _, err := process.Run(ctx, h.command(programs.install, "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=16M")); err != nil {
		return errors.Join(err, os.RemoveAll(h.dir))
	}
	d.DSN = "root@unix(" + socket + ")/"
	return h.serve(ctx, d, "pid", h.command(programs.server, "--no-defaults", "--datadir="+data,
		"--skip-networking", "--socket="+socket, "--pid-file="+filepath.Join(h.dir, "pid"),
		"--max-connections=300", "--character-set-server=utf8mb4", "--innodb-log-file-size=16M",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"))
}

type mariaDB struct{ install, server string }

func mariaDBPrograms() (m mariaDB, err error) {
	m.install, err = exec.LookPath("mariadb-install-db")
	if err != nil {
		return m, fmt.Errorf("%w (%w)", errNoMariaDB, err)
	}
	// Debian has it in a directory that is in the PATH of root only.
	for _, path := range []string{"mariadbd", "/usr/sbin/mariadbd"} {
		if m.server, err = exec.LookPath(path); err == nil {
			return m, nil
		}
	}
	return m, fmt.Errorf("%w (%w)", errNoMariaDB, err)
}
