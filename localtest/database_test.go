package localtest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var databases = map[string]struct {
	variable string
	missing  error
	start    func(context.Context) (*Database, error)
	forTest  func(testing.TB) string
	all      string
}{
	"pgx":   {"POSTGRES_DSN", errNoPostgres, StartPostgres, PostgresForTest, "SELECT datname FROM pg_database"},
	"mysql": {"MYSQL_DSN", errNoMariaDB, StartMariaDB, MariaDBForTest, "SHOW DATABASES"},
}

func connect(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // the server may be gone
	return db
}

func TestEachTestHasADatabaseToItself(t *testing.T) {
	for driver, d := range databases {
		t.Run(driver, func(t *testing.T) {
			var names []string
			for range 2 {
				t.Run("one of two", func(t *testing.T) {
					dsn := d.forTest(t)
					if _, err := connect(t, driver, dsn).Exec("CREATE TABLE mine (id INT)"); err != nil {
						t.Error(err)
					}
					names = append(names, regexp.MustCompile("pawl_[a-z0-9]+").FindString(dsn))
				})
			}
			rows, err := connect(t, driver, d.forTest(t)).Query(d.all)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var name string
				if err := rows.Scan(&name); err != nil {
					t.Fatal(err)
				}
				if name == names[0] || name == names[1] {
					t.Errorf("database %s is still there", name)
				}
			}
			if err := rows.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADatabaseServerThatIsNamedIsUsed(t *testing.T) {
	for driver, d := range databases {
		t.Run(driver, func(t *testing.T) {
			dsn := d.forTest(t)
			t.Setenv(d.variable, dsn)
			got, err := d.start(t.Context())
			if err != nil || got.DSN != dsn {
				t.Fatalf("got %v, error %v, want %s", got, err, dsn)
			}
			if err := errors.Join(got.Close(), connect(t, driver, dsn).Ping()); err != nil {
				t.Errorf("after Close: %v", err)
			}
			t.Setenv(d.variable, "host=127.0.0.1 port=1")
			if _, err := d.start(t.Context()); err == nil || !strings.Contains(err.Error(), d.variable) || errors.Is(err, d.missing) {
				t.Errorf("got error %v, want that %s is wrong", err, d.variable)
			}
		})
	}
}

func TestCloseLeavesNothingOfADatabaseServer(t *testing.T) {
	for driver, d := range databases {
		t.Run(driver, func(t *testing.T) {
			d.forTest(t) // skips without a server
			t.Setenv(d.variable, "")
			server, err := d.start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			if dir := homeIn(server.DSN); exists(dir) {
				t.Errorf("%s is still there", dir)
			}
			if err := connect(t, driver, server.DSN).Ping(); err == nil {
				t.Error("it still answers")
			}
		})
	}
}

// homeIn finds the directory of a server that we started.
func homeIn(dsn string) string { return regexp.MustCompile(`/[^ )]*/pawl-[0-9]+`).FindString(dsn) }

const databaseChildEnv = "LOCALTEST_DATABASE_CHILD"

// TestDatabaseInAChild is not for this process: another test runs it in one of
// its own.
func TestDatabaseInAChild(t *testing.T) {
	d, ok := databases[os.Getenv(databaseChildEnv)]
	if !ok {
		t.Skip("the child of another test")
	}
	os.Stdout.WriteString("dsn " + d.forTest(t) + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until we are killed
}

func TestNoDatabaseServerOutlivesATestBinaryThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for driver, d := range databases {
		t.Run(driver, func(t *testing.T) {
			d.forTest(t) // skips without a server
			t.Setenv(d.variable, "")
			t.Setenv(databaseChildEnv, driver)
			cmd := exec.Command(self, "-test.run=^TestDatabaseInAChild$")
			if _, err := cmd.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			dsn := ""
			for out := bufio.NewScanner(stdout); dsn == "" && out.Scan(); {
				_, dsn, _ = strings.Cut(out.Text(), "dsn ")
			}
			if err := errors.Join(connect(t, driver, dsn).Ping(), cmd.Process.Kill()); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // it says that we killed it
			soon(t, "its directory is gone, and so the server", func() bool { return !exists(homeIn(dsn)) })
			if err := connect(t, driver, dsn).Ping(); err == nil {
				t.Error("it still answers")
			}
		})
	}
}
