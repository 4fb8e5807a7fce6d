package localtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// install installs what is named on m, and returns what it said.
func (m *machine) install(names ...string) (said string, err error) {
	m.t.Helper()
	for _, variable := range []string{"S3_ENDPOINT", "REDIS_ADDR", "POSTGRES_DSN", "PG_BIN", "MYSQL_DSN"} {
		m.t.Setenv(variable, "")
	}
	var log strings.Builder
	err = Install(m.t.Context(), &log, names...)
	return log.String(), err
}

func TestABuildOfTheEngineSaysHowLongItTakesAndWhatNeedsNone(t *testing.T) {
	m := newMachine(t, "cargo")
	said, err := m.install("dynamodb")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"installing dynamodb", "minutes", "go run ./localtest/server -memory\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("it said %q, want %q in it", said, want)
		}
	}
	if said, err := m.install("dynamodb"); said != "" || err != nil {
		t.Errorf("the second time it said %q, error %v", said, err)
	}
}

func TestWhatTheUserNamedIsNotInstalled(t *testing.T) {
	newMachine(t, "cargo", "apt-get", "go")
	for variable, value := range map[string]string{
		"DYNAMODB_ENDPOINT": "http://127.0.0.1:1", "S3_ENDPOINT": "http://127.0.0.1:1", "REDIS_ADDR": "127.0.0.1:1",
		"POSTGRES_DSN": "host=127.0.0.1", "MYSQL_DSN": "root@tcp(127.0.0.1:1)/",
	} {
		t.Setenv(variable, value)
	}
	var log strings.Builder
	if err := Install(t.Context(), &log, "dynamodb", "s3", "redis", "postgres", "mariadb"); err != nil || log.Len() > 0 {
		t.Errorf("it said %q, error %v", log.String(), err)
	}
}

func TestWhatIsThereAndBrokenIsNotReplaced(t *testing.T) {
	m := newMachine(t, "cargo")
	t.Setenv("DYNAMODB_LOCAL_HOME", t.TempDir())
	if said, err := m.install("dynamodb"); said != "" || err == nil || !strings.Contains(err.Error(), "DynamoDBLocal.jar") {
		t.Errorf("it said %q, error %v, want that the jar is missing", said, err)
	}
	if calls := m.calls(); len(calls) > 0 {
		t.Errorf("called %q", calls)
	}
}

func TestAnInstallationThatFailsSaysWhyAndWhatToProvide(t *testing.T) {
	m := newMachine(t, "cargo")
	t.Setenv(brokenEnv, "cargo install")
	_, err := m.install("dynamodb", "redis")
	for _, want := range []string{"cargo: out of order", "DYNAMODB_ENDPOINT", "apt-get", "REDIS_ADDR"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q in it", err, want)
		}
	}
	if !errors.Is(err, errNoDynamoDB) || !errors.Is(err, errNoRedis) {
		t.Errorf("got error %v, want that both are missing", err)
	}
}

func TestPackagesOfDebianAreInstalledWithListsThatAreNew(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can install packages")
	}
	m := newMachine(t, "apt-get")
	if said, err := m.install("redis"); err != nil || !strings.Contains(said, "installing redis") {
		t.Fatalf("it said %q, error %v", said, err)
	}
	m.call("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", "install", "-y", "--no-install-recommends", "redis-server")

	m = newMachine(t, "apt-get")
	if _, err := m.install("mariadb"); !errors.Is(err, errNoMariaDB) { // apt-get does nothing of the kind
		t.Errorf("got error %v, want that it is still missing", err)
	}
	t.Setenv(brokenEnv, "apt-get -qq")
	if _, err := m.install("mariadb"); err == nil || !strings.Contains(err.Error(), "apt-get: out of order") {
		t.Errorf("got error %v, want why", err)
	}
	m.call("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", "update")
}

func TestAnEnvironmentOfPythonIsMadeForItsList(t *testing.T) {
	m := newMachine(t, "python3")
	list := filepath.Join(m.root, "tester.txt")
	writeFile(t, list, "tester==1\n", 0o644)
	before := pythonTool(list)
	if err := before.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := PythonForTest(t, list); !strings.HasPrefix(got, filepath.Join(m.root, ".tools/python-tester-")) || !exists(got) {
		t.Errorf("got %s", got)
	}
	writeFile(t, list, "tester==2\n", 0o644)
	if err := pythonTool(list).find(t.Context()); !errors.Is(err, errNotInstalled) {
		t.Errorf("with another list: got error %v, want that it is not installed", err)
	}
}

func TestEveryListOfPythonIsThere(t *testing.T) {
	root, err := repoRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range pythonRequirements {
		if !exists(filepath.Join(root, list)) {
			t.Errorf("there is no %s", list)
		}
	}
}

func TestAnUnknownNameIsRefusedWithThoseThatAreKnown(t *testing.T) {
	m := newMachine(t, "cargo")
	said, err := m.install("dynamodb", "oracle")
	for _, want := range append(known(), `"oracle"`) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s in it", err, want)
		}
	}
	if calls := m.calls(); said != "" || len(calls) > 0 {
		t.Errorf("it said %q and called %q", said, calls)
	}
}
