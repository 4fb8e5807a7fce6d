package localtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheNewestPostgresOfDebianIsTaken(t *testing.T) {
	t.Setenv("PG_BIN", "")
	debian := t.TempDir()
	for _, version := range []string{"9.6", "13", "15", "old"} {
		bin := filepath.Join(debian, version, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(bin, "initdb"), "", 0o755)
	}
	if err := os.MkdirAll(filepath.Join(debian, "17", "bin"), 0o755); err != nil { // a client only
		t.Fatal(err)
	}
	if got, err := postgresBin(debian); err != nil || got != filepath.Join(debian, "15", "bin") {
		t.Errorf("got %s, error %v, want version 15", got, err)
	}
	t.Setenv("PG_BIN", filepath.Join(debian, "13", "bin"))
	if got, err := postgresBin(debian); err != nil || got != filepath.Join(debian, "13", "bin") {
		t.Errorf("got %s, error %v, want what PG_BIN says", got, err)
	}
	t.Setenv("PG_BIN", filepath.Join(debian, "17", "bin"))
	if _, err := postgresBin(debian); err == nil || errors.Is(err, errNoPostgres) || !strings.Contains(err.Error(), "PG_BIN") {
		t.Errorf("got error %v, want that PG_BIN is wrong", err)
	}
}

func TestPostgresIsLookedForInThePath(t *testing.T) {
	t.Setenv("PG_BIN", "")
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if _, err := postgresBin(t.TempDir()); !errors.Is(err, errNoPostgres) {
		t.Errorf("got error %v, want that there is none", err)
	}
	writeFile(t, filepath.Join(bin, "initdb"), "", 0o755)
	if got, err := postgresBin(t.TempDir()); err != nil || got != bin {
		t.Errorf("got %s, error %v, want %s", got, err, bin)
	}
}

func TestTheAddressOfAPostgresMayHaveAnyForm(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://me:secret@db.example:5433/mine?sslmode=require": "postgres://me:secret@db.example:5433/theirs?sslmode=require",
		"postgres://db.example":        "postgres://db.example/theirs",
		"host=db.example dbname=mine":  "host=db.example dbname=mine dbname=theirs",
		"host=/run/postgresql user=me": "host=/run/postgresql user=me dbname=theirs",
	} {
		if got := withDatabase(dsn, "theirs"); got != want {
			t.Errorf("%s: got %s, want %s", dsn, got, want)
		}
	}
}
