package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/pkg/apigw"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

// send makes a call as Lambda makes it, through the wiring of main.
func send(t *testing.T, s settings.API, method, path, authorizer string) (status int, code string) {
	t.Helper()
	var e apigw.Event
	text := fmt.Sprintf(`{"version":"2.0","rawPath":%q,"body":"{}","requestContext":{"stage":"$default",
		"http":{"method":%q,"protocol":"HTTP/1.1","sourceIp":"192.0.2.1"},"authorizer":%s}}`, path, method, authorizer)
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	h := handler(new(memlease.Store), s, slog.New(slog.NewJSONHandler(io.Discard, nil)))
	a, err := h(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	var body struct{ Code string }
	_ = json.Unmarshal([]byte(a.Body), &body) // what is no problem has no code
	return a.StatusCode, body.Code
}

const (
	signed  = `{"iam":{"userArn":"arn:aws:sts::123456789012:assumed-role/Worker/i-1"}}`
	shown   = `{"jwt":{"claims":{"iss":"https://a","sub":"b","scope":"%s"}}}`
	roled   = `{"jwt":{"claims":{"iss":"https://a","sub":"b","roles":"[%s]"}}}`
	clients = `{"jwt":{"claims":{"iss":"https://a","client_id":"b","scp":"%s"}}}`
)

// Whoever is let in here may break the lock of everyone. Each pair of a
// deployment's kind of authorizer and what an event says of the caller is
// refused but for those named here, on every route that is not public.
func TestOnlyACallerThatTheDeploymentsAuthorizerVouchesForIsLetIn(t *testing.T) {
	type set struct{ auth, claim string }
	iam, jwt, roles := set{"iam", ""}, set{"jwt", ""}, set{"jwt", "roles"}
	letIn := map[string][]set{
		signed:  {iam},
		shown:   {jwt, roles},
		roled:   {roles},
		clients: {jwt, roles},
	}
	authorizers := []string{
		signed, shown, roled, clients,
		`null`, `{}`, `[]`, `"iam"`, `{"lambda":{"principal":"b"}}`, `{"iam":null,"jwt":null}`, `{"iam":{}}`, `{"jwt":{}}`,
		`{"iam":{"userArn":"junk"}}`, `{"iam":{"userArn":null}}`, `{"iam":{"userArn":""}}`, `{"iam":{"userArn":["arn:aws:iam::123456789012:user/b"]}}`,
		`{"iam":{"userArn":"arn:aws:iam::123456789012:user/b"},"jwt":{"claims":{"iss":"https://a","sub":"b","scope":"%s"}}}`,
		`{"iam":{"userArn":"arn:aws:iam::123456789012:user/b"},"lambda":{}}`,
		`{"jwt":{"claims":{"iss":"https://a","sub":"b","scope":"%s"}},"lambda":{}}`,
		`{"jwt":{"claims":{"iss":"https://a","sub":"b","scope":"another/%s"}}}`,
	}
	// Each claim that a good token needs, missing, null, empty and of a wrong type.
	for claim, others := range map[string]string{
		"sub":   `"iss":"https://a","scope":"%s"`,
		"iss":   `"sub":"b","scope":"%s"`,
		"scope": `"iss":"https://a","sub":"b"`,
		"scp":   `"iss":"https://a","sub":"b"`,
		"roles": `"iss":"https://a","sub":"b"`,
		"azp":   `"iss":"https://a","scope":"%s"`,
	} {
		authorizers = append(authorizers, `{"jwt":{"claims":{`+others+`}}}`)
		for _, value := range []string{`null`, `""`, `7`, `true`, `{"a":"b"}`, `["","%s x"]`, `[7,null]`} {
			authorizers = append(authorizers, `{"jwt":{"claims":{`+others+`,"`+claim+`":`+value+`}}}`)
		}
	}
	all, public := httplease.Routes()
	for _, route := range all {
		method, pattern, _ := strings.Cut(route, " ")
		path := strings.Replace(pattern, "{namespace}", "payments", 1)
		scope := strings.TrimPrefix(path, "/v1/")
		for _, format := range authorizers {
			a := strings.ReplaceAll(format, "%s", scope)
			for _, s := range []set{iam, jwt, roles, {"", ""}, {"none", ""}, {"IAM", ""}} {
				status, code := send(t, settings.API{Auth: settings.Auth(s.auth), ScopeClaim: s.claim}, method, path, a)
				refused := status == http.StatusForbidden && code == "forbidden"
				want := true
				for _, in := range letIn[format] {
					want = want && s != in
				}
				for _, p := range public {
					want = want && p != route
				}
				if refused != want {
					t.Errorf("%+v, %s, %s: got %d %q, want refused: %v", s, route, a, status, code, want)
				}
			}
		}
	}
}

func TestDifferentCallersHaveDifferentPrincipals(t *testing.T) {
	seen := make(map[string]string)
	for auth, authorizers := range map[settings.Auth][]string{
		settings.IAM: {
			`{"iam":{"userArn":"arn:aws:sts::123456789012:assumed-role/a/s"}}`,
			`{"iam":{"userArn":"arn:aws:sts::123456789012:federated-user/a"}}`,
			`{"iam":{"userArn":"arn:aws:sts::999999999999:assumed-role/a/s"}}`,
			`{"iam":{"userArn":"arn:aws:iam::123456789012:user/a"}}`,
			`{"iam":{"userArn":"arn:aws:iam::123456789012:user/a/a"}}`,
		},
		settings.JWT: {
			`{"jwt":{"claims":{"iss":"https://a","sub":"b"}}}`,
			`{"jwt":{"claims":{"iss":"https://a","client_id":"b"}}}`,
			`{"jwt":{"claims":{"iss":"https://a","sub":"client#b"}}}`,
			`{"jwt":{"claims":{"iss":"https://a","sub":" client#b"}}}`,
			`{"jwt":{"claims":{"iss":"https://a","sub":"#b"}}}`,
			`{"jwt":{"claims":{"iss":"https://b","sub":"b"}}}`,
		},
	} {
		for _, text := range authorizers {
			var a apigw.Authorizer
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				t.Fatal(err)
			}
			principal := a.IAM()
			if auth == settings.JWT {
				principal, _ = a.JWT()
			}
			if other, twice := seen[principal]; twice || principal == "" {
				t.Errorf("%s and %s are both %q", text, other, principal)
			}
			seen[principal] = text
		}
	}
}

// Whoever is refused wants to know by whom.
func TestTheHolderIsTheNameOfItsCallerUnlessItSaysAnother(t *testing.T) {
	for authorizer, want := range map[string]string{
		signed: "Worker",
		`{"iam":{"userArn":"arn:aws:iam::123456789012:user/teams/a#b/bob@example.com"}}`:  "bob@example.com",
		`{"iam":{"userArn":"arn:aws:iam::123456789012:root"}}`:                            "root",
		`{"iam":{"userArn":"arn:aws:sts::123456789012:federated-user/carol"}}`:            "carol",
		`{"jwt":{"claims":{"iss":"https://a","sub":"auth0|7#/x:y","scope":"p/acquire"}}}`: "auth0|7#/x:y",
		`{"jwt":{"claims":{"iss":"https://a","azp":"batch","scope":"p/acquire"}}}`:        "batch",
	} {
		s := settings.API{Auth: settings.IAM}
		if strings.Contains(authorizer, `"jwt"`) {
			s.Auth = settings.JWT
		}
		h := handler(new(memlease.Store), s, slog.New(slog.DiscardHandler))
		for body, want := range map[string]string{`{"lock":"a","ttl_ms":1000}`: want, `{"lock":"b","ttl_ms":1000,"holder":"it"}`: "it"} {
			var e apigw.Event
			text := fmt.Sprintf(`{"version":"2.0","rawPath":"/v1/p/acquire","body":%q,"requestContext":{"stage":"$default",
				"http":{"method":"POST","protocol":"HTTP/1.1","sourceIp":"192.0.2.1"},"authorizer":%s}}`, body, authorizer)
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			a, err := h(t.Context(), e)
			var got struct{ Holder string }
			if err == nil {
				err = json.Unmarshal([]byte(a.Body), &got)
			}
			if err != nil || a.StatusCode != http.StatusCreated || got.Holder != want {
				t.Errorf("%s, %s: got %d %s, %v, want the holder %q", authorizer, body, a.StatusCode, a.Body, err, want)
			}
		}
	}
}
