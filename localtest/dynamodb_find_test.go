package localtest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func portOf(d *DynamoDB) string { return d.Endpoint[strings.LastIndex(d.Endpoint, ":")+1:] }

func TestDynamoDBLocalRunsAsItsVendorSays(t *testing.T) {
	m := newMachine(t, "java")
	home := m.dynamoDBLocal()
	for dir, data := range map[string][]string{
		"":     {"-sharedDb", "-inMemory"},
		"data": {"-sharedDb", "-dbPath", filepath.Join(m.root, "data")},
	} {
		d := open(t, dir)
		want := slices.Concat([]string{"java", "-Djava.library.path=" + home + "/DynamoDBLocal_lib", "-jar", home + "/DynamoDBLocal.jar", "-port", portOf(d)}, data)
		if calls := m.calls(); !slices.Equal(calls[len(calls)-1], want) {
			t.Errorf("got %q, want %q", calls[len(calls)-1], want)
		}
	}
}

func TestDynamoDBLocalThatIsAskedForIsNotReplaced(t *testing.T) {
	t.Run("when its jar is missing", func(t *testing.T) {
		newMachine(t, "java", "dynoxide")
		t.Setenv("DYNAMODB_LOCAL_HOME", t.TempDir())
		refused(t, "DYNAMODB_LOCAL_HOME=", "DynamoDBLocal.jar")
	})
	t.Run("when there is no Java", func(t *testing.T) {
		newMachine(t, "dynoxide").dynamoDBLocal()
		refused(t, "DYNAMODB_LOCAL_HOME", "java")
	})
	t.Run("when it ends at once, which its own words explain", func(t *testing.T) {
		m := newMachine(t, "java", "dynoxide")
		home := m.dynamoDBLocal()
		t.Setenv(brokenEnv, "java -Djava.library.path="+home+"/DynamoDBLocal_lib")
		refused(t, "DYNAMODB_LOCAL_HOME", "java ended: exit status 7: java: out of order")
		m.call("java") // an engine that fails on a free port is not tried again
	})
}

func TestTheContainerIsRemovedAtTheEnd(t *testing.T) {
	for dir, data := range map[string][]string{
		"":     {dockerImage, "-jar", "DynamoDBLocal.jar", "-sharedDb", "-inMemory"},
		"data": {"--user", "root", "--mount", "MOUNT", dockerImage, "-jar", "DynamoDBLocal.jar", "-sharedDb", "-dbPath", "/data"},
	} {
		t.Run("its data in "+dir, func(t *testing.T) {
			m := newMachine(t, "docker")
			d := open(t, dir)
			got := m.call("docker", "run")
			name := got[slices.Index(got, "--name")+1]
			want := slices.Concat([]string{"docker", "run", "--rm", "--name", name, "--label", "pawl=localtest",
				"--publish", "127.0.0.1:" + portOf(d) + ":8000"}, data)
			if i := slices.Index(want, "MOUNT"); i >= 0 {
				want[i] = "type=bind,\"source=" + m.root + "/data\",target=/data"
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if calls := m.calls(); len(calls) != 2 {
				t.Errorf("got calls %q, want docker info and docker run", calls)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			m.call("docker", "rm", "--force", name)
		})
	}
}

func TestDockerThatDoesNotAnswerIsPassedOver(t *testing.T) {
	for how, env := range map[string]string{"it refuses": brokenEnv, "it hangs": hangingEnv} {
		t.Run(how, func(t *testing.T) {
			m := newMachine(t, "docker", "dynoxide")
			t.Setenv(env, "docker info")
			if got := open(t, "").Name; !strings.HasPrefix(got, "dynoxide ") {
				t.Errorf("got %s, want dynoxide", got)
			}
			m.call("docker")
		})
	}
}

func TestDockerThatAnswersIsNotReplaced(t *testing.T) {
	m := newMachine(t, "docker", "dynoxide")
	t.Setenv(brokenEnv, "docker run")
	refused(t, dockerImage, "docker: out of order")
	m.call("docker", "rm", "--force") // it may have been created all the same
}

func TestDynoxideIsBuiltOnceAtItsPinnedVersion(t *testing.T) {
	m := newMachine(t, "cargo")
	for range 2 {
		if err := Install(t.Context(), t.Output(), "dynamodb"); err != nil {
			t.Fatal(err)
		}
		if got := open(t, "").Name; !strings.HasPrefix(got, "dynoxide ") {
			t.Errorf("got %s, want dynoxide", got)
		}
	}
	got := m.call("cargo")
	want := []string{"cargo", "install", "dynoxide-rs", "--version", "=3.2.0", "--locked",
		"--no-default-features", "--features", "native-sqlite,http-server,cli"}
	if !slices.Equal(got[:len(want)], want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(m.root, ".tools/dynoxide-3.2.0/bin/dynoxide")); err != nil {
		t.Error(err)
	}
}

func TestNothingIsBuiltToStartADynamoDB(t *testing.T) {
	m := newMachine(t, "cargo")
	if err := refused(t, "(go run ./localtest/stores does"); !errors.Is(err, errNoDynamoDB) {
		t.Errorf("got %v, want errNoDynamoDB", err)
	}
	if calls := m.calls(); len(calls) > 0 {
		t.Errorf("called %q", calls)
	}
}
