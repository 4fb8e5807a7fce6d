package sqlguard_test

import (
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/guard/sqlguard"
)

// Behind pgbouncer in transaction mode a session is another one in each
// transaction. It is tested where there is one in PATH; no other test needs it.
func TestTheGuardWorksBehindPgbouncer(t *testing.T) {
	program, err := osexec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("no pgbouncer in PATH")
	}
	behind, err := pgx.ParseConfig(postgres.forTest(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]pgx.QueryExecMode{
		"exec": pgx.QueryExecModeExec, "simple protocol": pgx.QueryExecModeSimpleProtocol, "describe": pgx.QueryExecModeDescribeExec,
	} {
		t.Run(name, func(t *testing.T) {
			k := postgres.with(func(c *connection) { c.postgres.DefaultQueryExecMode = mode })
			db := k.open(t, bounce(t, program, behind))
			db.SetMaxIdleConns(10)
			g := &sqlguard.Guard{Dialect: sqlguard.Postgres, Schema: "pawl_" + strings.ReplaceAll(name, " ", "_")}
			for _, s := range append(g.Statements(), "DROP TABLE IF EXISTS doc", "CREATE TABLE doc (id INT PRIMARY KEY, body TEXT)",
				"INSERT INTO doc (id, body) VALUES (1, '')") {
				if _, err := db.ExecContext(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					for n := range 20 {
						token := fence.Token(1 + 10*n + i)
						if err := k.write(t.Context(), db, g, token, token.String()); err != nil && !fence.Refused(err) {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if got := body(t, db); got != "200" {
				t.Errorf("left %s, want the 200 of the newest holder", got)
			}
		})
	}
}

// bounce starts pgbouncer, with 3 sessions of the server, and returns how to reach
// it.
func bounce(t *testing.T, program string, behind *pgx.ConnConfig) (dsn string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password := ""
	if behind.Password != "" {
		password = " password=" + behind.Password
	}
	config := fmt.Sprintf(`[databases]
guarded = host=%s port=%d user=%s dbname=%s%s
[pgbouncer]
unix_socket_dir = %s
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 3
ignore_startup_parameters = extra_float_digits
`, behind.Host, behind.Port, behind.User, behind.Database, password, dir)
	path := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{path}
	if os.Getuid() == 0 { // it refuses to run as root
		args = []string{"-u", "nobody", path}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := osexec.Command(program, append([]string{"-q"}, args...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	socket := filepath.Join(dir, ".s.PGSQL.6432")
	for until := time.Now().Add(5 * time.Second); ; {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close()
			break
		} else if time.Now().After(until) {
			t.Fatalf("pgbouncer does not answer: %v", err)
		}
	}
	return fmt.Sprintf("host=%s port=6432 user=%s dbname=guarded", dir, behind.User)
}
