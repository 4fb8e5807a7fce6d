package localtest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// open starts a DynamoDB for the length of the test.
func open(t *testing.T, dataDir string) *DynamoDB {
	t.Helper()
	d, err := StartDynamoDB(t.Context(), dataDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// refused starts a DynamoDB, which must fail with an error that has all these parts.
func refused(t *testing.T, parts ...string) error {
	t.Helper()
	d, err := StartDynamoDB(t.Context(), "")
	if err == nil {
		_ = d.Close()
		t.Fatalf("got %s, want an error with %q", d.Name, parts)
	}
	for _, part := range append(parts, "localtest: ") {
		if strings.Count(err.Error(), part) != 1 {
			t.Errorf("got error %q, want it to say %q once", err, part)
		}
	}
	return err
}

// tables are the names of the tables in d.
func tables(t *testing.T, d *DynamoDB) []string {
	t.Helper()
	out, err := dynamodb.New(d.Options()).ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	return out.TableNames
}

func TestStartDynamoDBTakesTheFirstThatIsThere(t *testing.T) {
	programs := []string{"java", "docker", "dynoxide"}
	t.Run("the endpoint before DynamoDB Local", func(t *testing.T) {
		m := newMachine(t, programs...)
		other := open(t, "")
		before := len(m.calls())
		m.dynamoDBLocal()
		t.Setenv("DYNAMODB_ENDPOINT", other.Endpoint)
		if d := open(t, ""); d.Endpoint != other.Endpoint {
			t.Errorf("got %s at %s, want %s", d.Name, d.Endpoint, other.Endpoint)
		}
		if calls := m.calls()[before:]; len(calls) > 0 {
			t.Errorf("started something as well: %q", calls)
		}
	})
	t.Run("DynamoDB Local before Docker", func(t *testing.T) {
		m := newMachine(t, programs...)
		m.dynamoDBLocal()
		if got, want := open(t, "").Name, "DynamoDB Local from DYNAMODB_LOCAL_HOME (in memory)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("Docker before dynoxide", func(t *testing.T) {
		newMachine(t, programs...)
		if got, want := open(t, "").Name, "amazon/dynamodb-local:2.6.1 in Docker (in memory)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("dynoxide before cargo", func(t *testing.T) {
		m := newMachine(t, "dynoxide", "cargo")
		if got := open(t, "").Name; !strings.HasPrefix(got, "dynoxide ") || !strings.HasSuffix(got, " (in memory)") {
			t.Errorf("got %s, want dynoxide", got)
		}
		if calls := m.calls(); len(calls) > 0 {
			t.Errorf("called %q", calls)
		}
	})
}

func TestStartDynamoDBSaysWhatToProvideWhenThereIsNone(t *testing.T) {
	newMachine(t)
	err := refused(t, "DYNAMODB_ENDPOINT", "DYNAMODB_LOCAL_HOME", "start Docker", "install dynoxide", "cargo)")
	if !errors.Is(err, errNoDynamoDB) {
		t.Errorf("got %v, want errNoDynamoDB", err)
	}
}

func TestStartDynamoDBRefusesAnEndpointThatIsNotThere(t *testing.T) {
	newMachine(t, "dynoxide")
	for endpoint, why := range map[string]string{
		"http://127.0.0.1:1": "connection refused",
		"localhost:8000":     "not a URL",
		"127.0.0.1:8000":     "not a URL",
	} {
		t.Setenv("DYNAMODB_ENDPOINT", endpoint)
		if err := refused(t, "DYNAMODB_ENDPOINT="+endpoint, why); errors.Is(err, errNoDynamoDB) {
			t.Errorf("%v: want it to be an error of that endpoint", err)
		}
	}
}

func TestCloseLeavesTheEndpointOfTheUserAlone(t *testing.T) {
	newMachine(t, "dynoxide")
	theirs := open(t, "")
	t.Setenv("DYNAMODB_ENDPOINT", theirs.Endpoint)
	if err := open(t, "").Close(); err != nil {
		t.Fatal(err)
	}
	tables(t, theirs)
}

func TestCloseEndsTheEngine(t *testing.T) {
	newMachine(t, "dynoxide")
	d := open(t, "")
	for range 2 { // closing twice is not an error
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := http.Get(d.Endpoint); err == nil {
		t.Error("the engine still answers")
	}
}

func TestTheEngineOutlivesTheContextThatStartedIt(t *testing.T) {
	newMachine(t, "dynoxide")
	ctx, cancel := context.WithCancel(t.Context())
	d, err := StartDynamoDB(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	tables(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDataSurvivesARestart(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T){
		"dynoxide":       func(t *testing.T) { newMachine(t, "dynoxide") },
		"DynamoDB Local": func(t *testing.T) { newMachine(t, "java").dynamoDBLocal() },
		"Docker":         func(t *testing.T) { newMachine(t, "docker") },
	} {
		t.Run(name, func(t *testing.T) {
			prepare(t)
			const dir = "some/new,er dir" // the comma would end a value in docker's --mount
			d := open(t, dir)
			if err := (prober{dynamodb.New(d.Options()), "kept"}).createTable(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if got := tables(t, open(t, dir)); len(got) != 1 || got[0] != "kept" {
				t.Errorf("after a restart there are tables %q, want kept alone", got)
			}
			if got := tables(t, open(t, "")); len(got) != 0 {
				t.Errorf("in memory there are tables %q, want none", got)
			}
		})
	}
}

func TestOptionsAreThoseOfTheUserForTheEndpointOfTheUser(t *testing.T) {
	env := map[string]string{"AWS_REGION": "sa-east-1", "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session"}
	mine := aws.Credentials{AccessKeyID: "AKIA", SecretAccessKey: "secret", SessionToken: "session"}
	dummy := aws.Credentials{AccessKeyID: "pawl", SecretAccessKey: "pawl"}
	for _, c := range []struct {
		endpoint    string
		env         map[string]string
		region      string
		credentials aws.Credentials
	}{
		{"http://127.0.0.1:8000", nil, "us-east-1", dummy},
		{"http://127.0.0.1:8000", env, "sa-east-1", mine},
		{"http://dynamodb.internal.example:8000", nil, "us-east-1", dummy},
		{"https://dynamodb.eu-west-1.amazonaws.com", env, "eu-west-1", mine},
		{"https://dynamodb-fips.us-gov-west-1.amazonaws.com", env, "us-gov-west-1", mine},
		{"https://vpce-1-2.dynamodb.eu-west-1.vpce.amazonaws.com", env, "eu-west-1", mine},
		{"https://123456789012.ddb.eu-west-1.amazonaws.com", env, "eu-west-1", mine},
	} {
		t.Run(c.endpoint, func(t *testing.T) {
			newMachine(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			d, err := namedDynamoDB(c.endpoint)
			if err != nil {
				t.Fatal(err)
			}
			o := d.Options()
			got, err := o.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if *o.BaseEndpoint != c.endpoint || o.Region != c.region || got != c.credentials {
				t.Errorf("%s: got Region %s, credentials %v at %s; want Region %s, credentials %v", c.endpoint, o.Region, got, *o.BaseEndpoint, c.region, c.credentials)
			}
		})
	}
}

func TestStartedEnginesDoNotGetTheCredentialsOfTheUser(t *testing.T) {
	newMachine(t, "dynoxide")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIA")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	got, err := open(t, "").Options().Credentials.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "pawl" {
		t.Errorf("got access key %q, error %v; want a dummy", got.AccessKeyID, err)
	}
}
