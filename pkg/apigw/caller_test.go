package apigw

import (
	"reflect"
	"testing"
)

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
		"":                                                           "",
		"AROAEXAMPLE:session":                                        "",
		"an:aws:sts::123456789012:assumed-role/Name/session":         "",
	} {
		got := Authorizer{IAM: &IAM{UserARN: arn}}.caller()
		if !reflect.DeepEqual(got, Caller{Principal: want}) {
			t.Errorf("%s: got %+v, want %q", arn, got, want)
		}
	}
}

func TestASubjectIsKnownByItsIssuer(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"both claims":             {map[string]any{"iss": "https://a", "sub": "b"}, "https://a#b"},
		"# in the subject":        {map[string]any{"iss": "https://a", "sub": "b#c"}, "https://a#b#c"},
		"# in the issuer":         {map[string]any{"iss": "https://a#b", "sub": "c"}, ""},
		"no issuer":               {map[string]any{"sub": "b", "scope": "x"}, ""},
		"no subject":              {map[string]any{"iss": "https://a", "scope": "x"}, ""},
		"empty subject":           {map[string]any{"iss": "https://a", "sub": ""}, ""},
		"subject not a string":    {map[string]any{"iss": "https://a", "sub": 7.0}, ""},
		"subject in another case": {map[string]any{"iss": "https://a", "Sub": "b"}, ""},
		"no claims":               {nil, ""},
	} {
		got := Authorizer{JWT: &JWT{Claims: c.claims}}.caller()
		if want := (Caller{Principal: c.want, JWT: c.want != ""}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestScopesAreReadHoweverTheyAreWritten(t *testing.T) {
	for name, c := range map[string]struct {
		scope, scp any
		want       []string
	}{
		"text":                 {"a b", nil, []string{"a", "b"}},
		"array as text":        {"[a b]", nil, []string{"a", "b"}},
		"empty array as text":  {"[]", nil, nil},
		"a bracket alone":      {"[a b", "c d]", []string{"[a", "b", "c", "d]"}},
		"array":                {nil, []any{"a", "b"}, []string{"a", "b"}},
		"array of mixed kinds": {nil, []any{"a", 1.0, nil, "b"}, []string{"a", "b"}},
		"both claims":          {"a", []any{"b"}, []string{"a", "b"}},
		"number":               {1.0, nil, nil},
		"neither":              {nil, nil, nil},
	} {
		jwt := &JWT{Claims: map[string]any{"iss": "https://a", "sub": "b", "scope": c.scope, "scp": c.scp}}
		got := Authorizer{JWT: jwt}.caller().Scopes
		if len(got) != len(c.want) || len(got) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestACallerIsNeverGuessed(t *testing.T) {
	iam := &IAM{UserARN: "arn:aws:iam::123456789012:user/Bob"}
	jwt := &JWT{Claims: map[string]any{"iss": "https://a", "sub": "b", "scope": "x"}}
	for name, a := range map[string]Authorizer{
		"neither": {},
		"both":    {IAM: iam, JWT: jwt},
	} {
		if got := a.caller(); !reflect.DeepEqual(got, Caller{}) {
			t.Errorf("%s: got %+v, want the anonymous caller", name, got)
		}
	}
}
