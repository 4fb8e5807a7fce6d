package apigw

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// authorizer reads the member of an event.
func authorizer(t *testing.T, text string) (a Authorizer) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return a
}

func TestAPrincipalOutlivesItsSessions(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:sts::123456789012:assumed-role/Name/session":        "arn:aws:sts::123456789012:assumed-role/Name",
		"arn:aws:sts::123456789012:assumed-role/Name/alice@example":  "arn:aws:sts::123456789012:assumed-role/Name",
		"arn:aws:sts::123456789012:assumed-role/Name/Name":           "arn:aws:sts::123456789012:assumed-role/Name",
		"arn:aws:sts::123456789012:assumed-role/Name":                "arn:aws:sts::123456789012:assumed-role/Name",
		"arn:aws-cn:sts::123456789012:assumed-role/Name/session":     "arn:aws-cn:sts::123456789012:assumed-role/Name",
		"arn:aws-us-gov:sts::123456789012:assumed-role/Name/session": "arn:aws-us-gov:sts::123456789012:assumed-role/Name",
		"arn:aws:sts::123456789012:federated-user/Bob":               "arn:aws:sts::123456789012:federated-user/Bob",
		"arn:aws:iam::123456789012:user/Bob":                         "arn:aws:iam::123456789012:user/Bob",
		"arn:aws:iam::123456789012:user/team/Bob":                    "arn:aws:iam::123456789012:user/team/Bob",
		"arn:aws:iam::123456789012:user/:assumed-role/team/Bob":      "arn:aws:iam::123456789012:user/:assumed-role/team/Bob",
		"arn:aws:iam::123456789012:assumed-role/not/sts":             "arn:aws:iam::123456789012:assumed-role/not/sts",
		"arn:aws:iam::123456789012:root":                             "arn:aws:iam::123456789012:root",
	} {
		a := authorizer(t, fmt.Sprintf(`{"iam":{"userArn":%q}}`, arn))
		if got := a.IAM(); got != want {
			t.Errorf("%s: got %q, want %q", arn, got, want)
		}
		if got, scopes := a.JWT(); got != "" || scopes != nil {
			t.Errorf("%s: a signature was taken for a token of %q", arn, got)
		}
	}
}

func TestASubjectIsKnownByItsIssuer(t *testing.T) {
	for claims, want := range map[string]string{
		`{"iss":"https://a","sub":"b"}`:                       "https://a#b",
		`{"iss":"https://a","sub":"b#c"}`:                     "https://a#b#c",
		`{"iss":"https://a","sub":"b","client_id":"c"}`:       "https://a#b",
		`{"iss":"https://a","client_id":"b"}`:                 "https://a client#b",
		`{"iss":"https://a","sub":null,"azp":"b"}`:            "https://a client#b",
		`{"iss":"https://a","sub":"","appid":"b"}`:            "https://a client#b",
		`{"iss":"https://a","appid":"c","azp":"b"}`:           "https://a client#b",
		`{"iss":"https://a","azp":"c","client_id":"b"}`:       "https://a client#b",
		`{"iss":"https://a","client_id":7,"azp":"b"}`:         "https://a client#b",
		`{"iss":"https://a","sub":"client#b"}`:                "https://a#client#b",
		`{"iss":"https://a#b","sub":"c"}`:                     "",
		`{"iss":"https://a client","sub":"c"}`:                "",
		`{"sub":"b","scope":"x"}`:                             "",
		`{"iss":"https://a","scope":"x"}`:                     "",
		`{"iss":"https://a","sub":7,"client_id":"b"}`:         "",
		`{"iss":["https://a"],"sub":"b"}`:                     "",
		`{"iss":"https://a","Sub":"b"}`:                       "",
		`{"ISS":"https://a","sub":"b"}`:                       "",
		`{"iss":"https://a","client_id":["b"],"azp":{"b":1}}`: "",
		`null`: "",
		`[]`:   "",
		`"x"`:  "",
	} {
		a := authorizer(t, `{"jwt":{"claims":`+claims+`}}`)
		if got, _ := a.JWT(); got != want {
			t.Errorf("%s: got %q, want %q", claims, got, want)
		}
		if got := a.IAM(); got != "" {
			t.Errorf("%s: a token was taken for a signature of %q", claims, got)
		}
	}
}

func TestScopesAreReadHoweverTheyAreWritten(t *testing.T) {
	for claims, want := range map[string][]string{
		`"scope":"a b"`:                            {"a", "b"},
		`"scope":"[a b]"`:                          {"a", "b"},
		`"scope":"[]"`:                             nil,
		`"scope":"[a b","scp":"c d]"`:              {"[a", "b", "c", "d]"},
		`"scp":["a","b"]`:                          {"a", "b"},
		`"scp":["a",1.0,null,"b"]`:                 {"a", "b"},
		`"scope":"a","scp":["b"]`:                  {"a", "b"},
		`"scope":"a","roles":["b"],"groups":["c"]`: {"a", "b"},
		`"scope":["a b"]`:                          {"a b"}, // one scope, which is none of ours
		`"scope":1`:                                nil,
		`"scope":{"a":true}`:                       nil,
		`"scope":null,"scp":true`:                  nil,
		`"Scope":"a"`:                              nil,
		`"":"a"`:                                   nil,
		`"x":1`:                                    nil,
	} {
		a := authorizer(t, `{"jwt":{"claims":{"iss":"https://a","sub":"b",`+claims+`}}}`)
		if _, got := a.JWT("", "roles"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", claims, got, want)
		}
	}
}

func TestACallerIsNeverGuessed(t *testing.T) {
	const iam = `"iam":{"userArn":"arn:aws:iam::123456789012:user/Bob"}`
	const jwt = `"jwt":{"claims":{"iss":"https://a","sub":"b","scope":"x"}}`
	for _, text := range []string{
		`null`, `{}`, `[]`, `"iam"`, `7`,
		`{` + iam + `,` + jwt + `}`,
		`{` + iam + `,"lambda":{"user":"Bob"}}`,
		`{` + jwt + `,"lambda":null,"other":true}`,
		`{"lambda":{"iss":"https://a","sub":"b","userArn":"arn:aws:iam::123456789012:user/Bob"}}`,
		`{"IAM":{"userArn":"arn:aws:iam::123456789012:user/Bob"}}`,
		`{"iam":{"UserArn":"arn:aws:iam::123456789012:user/Bob"}}`,
		`{"iam":null,"jwt":null}`, `{"iam":{}}`, `{"jwt":{}}`, `{"iam":[]}`, `{"jwt":"token"}`,
		`{"iam":{"userArn":null}}`, `{"iam":{"userArn":""}}`, `{"iam":{"userArn":7}}`,
		`{"iam":{"userArn":"AROAEXAMPLE:session"}}`,
		`{"iam":{"userArn":"junk"}}`,
		`{"iam":{"userArn":"an:aws:sts::123456789012:assumed-role/Name/session"}}`,
		`{"iam":{"userArn":"arn:aws:sts::123456789012:assumed-role/"}}`,
		`{"iam":{"userArn":"arn:aws:sts::123456789012:assumed-role//session"}}`,
		`{"iam":{"userArn":"arn:aws:s3:::bucket"}}`,
		`{"iam":{"userArn":"arn:aws:iam::123456789012:"}}`,
		`{"iam":{"userArn":"arn:aws:iam:::user/Bob"}}`,
		`{"jwt":{"claims":null}}`, `{"jwt":{"claims":"x"}}`, `{"jwt":{"claims":{}}}`,
	} {
		a := authorizer(t, text)
		principal, scopes := a.JWT()
		if a.IAM() != "" || principal != "" || scopes != nil {
			t.Errorf("%s: got %q, and %q with %q, want nobody", text, a.IAM(), principal, scopes)
		}
	}
	if a := authorizer(t, `{`+iam+`,"jwt":null}`); a.IAM() == "" {
		t.Error("a member that is null hides the caller")
	}
}
