package gateway

import (
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pawl-lock/pawl/localtest/rigor"
)

var (
	alice = Key{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", UserARN: "arn:aws:iam::210987654321:user/alice"}
	role  = Key{ID: "ASIAEXAMPLE", Secret: "other", SessionToken: "token/+=", UserARN: "arn:aws:sts::210987654321:assumed-role/app/i-1", UserID: "AROAEXAMPLE:i-1"}
)

// AWS's documentation derives this key step by step.
func TestTheSigningKeyIsAWSsExample(t *testing.T) {
	got := hex.EncodeToString(signingKey(alice.Secret, "20150830", "us-east-1", "iam"))
	if want := "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Two requests that AWS publishes: the ListUsers example of the documentation,
// and get-vanilla of the test suite.
func TestAWSsExamplesVerify(t *testing.T) {
	for name, c := range map[string]struct{ service, url, contentType, headers, signature string }{
		"ListUsers": {
			"iam", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
			"application/x-www-form-urlencoded; charset=utf-8", "content-type;host;x-amz-date",
			"5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
		},
		"get-vanilla": {
			"service", "https://example.amazonaws.com/", "", "host;x-amz-date",
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", c.url, nil)
			if c.contentType != "" {
				r.Header.Set("Content-Type", c.contentType)
			}
			r.Header.Set("X-Amz-Date", "20150830T123600Z")
			r.Header.Set("Authorization", algorithm+" Credential=AKIDEXAMPLE/20150830/us-east-1/"+c.service+
				"/aws4_request, SignedHeaders="+c.headers+", Signature="+c.signature)
			then := func() time.Time { return time.Date(2015, 8, 30, 12, 38, 0, 0, time.UTC) }
			v := verifier{"us-east-1", c.service, map[string]Key{alice.ID: alice}, then}
			if _, err := v.verify(r, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// newSigned returns a request that Go's SDK has signed, and its body.
func newSigned(t *testing.T, k Key, at time.Time, url, body string, change ...func(*http.Request)) (*http.Request, []byte) {
	t.Helper()
	r := httptest.NewRequest("POST", url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Add("X-Many", "one  two ")
	r.Header.Add("X-Many", " three")
	for _, f := range change {
		f(r)
	}
	signer := v4.NewSigner()
	creds := aws.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.SessionToken}
	if err := signer.SignHTTP(t.Context(), creds, r, hashHex(body), "execute-api", "us-east-1", at); err != nil {
		t.Fatal(err)
	}
	return r, []byte(body)
}

func TestWhatTheSDKSignsVerifies(t *testing.T) {
	authorize := IAM("us-east-1", alice, role)
	for _, url := range []string{
		"/v1/payments/acquire",
		"/v1/a%20b%2Fc/%E2%82%AC+@:=",
		"/?b=2&a=1&a=&a=%2F&a=-&flag&%C3%A9=%20&a-=x&plus=a%2Bb",
	} {
		for _, k := range []Key{alice, role} {
			for _, body := range []string{"", `{"lock":"orders/42"}`} {
				r, b := newSigned(t, k, time.Now(), "https://api.example.com"+url, body)
				got, err := authorize(r, b)
				if err != nil {
					t.Errorf("%s signed by %s: %v", url, k.ID, err)
				} else if arn := got["iam"].(map[string]any)["userArn"]; arn != k.UserARN {
					t.Errorf("caller %v, want %s", arn, k.UserARN)
				}
			}
		}
	}
}

func TestWhatWasNotSignedSoIsForbidden(t *testing.T) {
	const url = "https://api.example.com/v1/payments/acquire?a=1"
	resign := func(change func(auth string) string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", change(r.Header.Get("Authorization"))) }
	}
	replace := func(from, to string) func(*http.Request) {
		return resign(func(auth string) string {
			if !strings.Contains(auth, from) {
				panic(from + " is not in " + auth)
			}
			return strings.Replace(auth, from, to, 1)
		})
	}
	cases := map[string]struct {
		key    Key
		age    time.Duration
		before func(*http.Request)
		after  func(*http.Request)
		body   string
		reason string // empty: does not match
	}{
		"no authorization":       {after: func(r *http.Request) { r.Header.Del("Authorization") }, reason: "0 Authorization"},
		"two authorizations":     {after: func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }, reason: "2 Authorization"},
		"a bearer token":         {after: resign(func(string) string { return "Bearer abc" }), reason: "no valid AWS4"},
		"another algorithm":      {after: replace(algorithm, "AWS4-ECDSA-P256-SHA256"), reason: "no valid AWS4"},
		"a signature of another": {key: Key{ID: alice.ID, Secret: "guessed"}},
		"an unknown key":         {key: Key{ID: "AKIDOTHER", Secret: alice.Secret}, reason: "unknown key"},
		"a signature cut short":  {after: resign(func(auth string) string { return auth[:len(auth)-2] })},
		"one more field":         {after: resign(func(auth string) string { return auth + ", More=1" }), reason: "no valid AWS4"},
		"no signature":           {after: resign(func(auth string) string { return auth[:strings.Index(auth, "Signature=")+len("Signature=")] })},
		"signed 5 minutes ago":   {age: 5*time.Minute + time.Second, reason: "old"},
		"signed 5 minutes ahead": {age: -5*time.Minute - 2*time.Second, reason: "old"},
		"another body":           {body: "{}"},
		"another method":         {after: func(r *http.Request) { r.Method = "PUT" }},
		"another path":           {after: func(r *http.Request) { r.URL.Path = "/v1/payments/break" }},
		"another query":          {after: func(r *http.Request) { r.URL.RawQuery = "a=2" }},
		"one more in the query":  {after: func(r *http.Request) { r.URL.RawQuery += "&b=" }},
		"a query that is none":   {after: func(r *http.Request) { r.URL.RawQuery = "a=%zz" }, reason: "invalid URL escape"},
		"another header":         {after: func(r *http.Request) { r.Header.Set("X-Many", "one") }},
		"a header less":          {after: func(r *http.Request) { r.Header.Del("X-Many") }, reason: "not there"},
		"another host":           {after: func(r *http.Request) { r.Host = "other.example.com" }},
		"another date": {after: func(r *http.Request) {
			stamp := r.Header.Get("X-Amz-Date")
			other := stamp[:13] + "00Z" // of the same day at any time
			if other == stamp {
				other = stamp[:13] + "01Z"
			}
			r.Header.Set("X-Amz-Date", other)
		}},
		"no date":                    {after: func(r *http.Request) { r.Header.Del("X-Amz-Date") }, reason: "no valid x-amz-date"},
		"a date that is none":        {after: func(r *http.Request) { r.Header.Set("X-Amz-Date", "now") }, reason: "no valid x-amz-date"},
		"another day in the scope":   {after: func(r *http.Request) { replace("/"+r.Header.Get("X-Amz-Date")[:8]+"/", "/20150830/")(r) }, reason: "scope"},
		"another region":             {after: replace("/us-east-1/", "/eu-west-1/"), reason: "scope"},
		"another service":            {after: replace("/execute-api/", "/dynamodb/"), reason: "scope"},
		"a scope without its end":    {after: replace("/aws4_request", ""), reason: "scope"},
		"an unsigned host":           {after: replace("host;", ""), reason: "lack the host"},
		"headers out of order":       {after: replace("content-type;host", "host;content-type"), reason: "not sorted"},
		"an x-amz header not signed": {after: func(r *http.Request) { r.Header.Set("X-Amz-Target", "x") }, reason: "not signed"},
		"a token to a permanent key": {before: func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "x") }, reason: "session token"},
		"a temporary key, no token":  {key: Key{ID: role.ID, Secret: role.Secret}, reason: "session token"},
		"a temporary key, other one": {key: Key{ID: role.ID, Secret: role.Secret, SessionToken: "expired"}, reason: "session token"},
		"an unsigned payload":        {before: func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD") }, reason: "not the body"},
		"a hash of another body":     {before: func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", hashHex("")) }, reason: "not the body"},
	}
	authorize := IAM("us-east-1", alice, role)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.key.ID == "" {
				c.key = alice
			}
			if c.before == nil {
				c.before = func(*http.Request) {}
			}
			r, body := newSigned(t, c.key, time.Now().Add(-c.age), url, `{"lock":"orders/42"}`, c.before)
			if c.after != nil {
				c.after(r)
			}
			if c.body != "" {
				body = []byte(c.body)
			}
			got, err := authorize(r, body)
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Status != http.StatusForbidden {
				t.Fatalf("got %v, %v, want a refusal with 403", got, err)
			}
			if c.reason == "" {
				c.reason = "does not match"
			}
			if !strings.Contains(refusal.Reason, c.reason) {
				t.Errorf("reason %q, want %q", refusal.Reason, c.reason)
			}
		})
	}
}

// The SDK and curl both send a query in canonical form, or nearly; others need
// not.
func TestTheCanonicalQueryIsEncodedThenSorted(t *testing.T) {
	got, err := canonicalQuery("b=2&a=1&a=&a=%2f&a=-&flag&a-=x&p=a+b&%C3%A9=%20~*&")
	if want := "%C3%A9=%20~%2A&a=&a=%2F&a=-&a=1&a-=x&b=2&flag=&p=a%20b"; got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestAPresignedURLIsForbidden(t *testing.T) {
	r := httptest.NewRequest("GET", "https://api.example.com/v1/payments/lock?name=a", nil)
	creds := aws.Credentials{AccessKeyID: alice.ID, SecretAccessKey: alice.Secret}
	url, _, err := v4.NewSigner().PresignHTTP(t.Context(), creds, r, hashHex(""), "execute-api", "us-east-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := IAM("us-east-1", alice)(httptest.NewRequest("GET", url, nil), nil); err == nil {
		t.Error("it passed")
	}
}

// The wire is not what the signer saw: Go's client and server are in between.
func TestASignedRequestVerifiesAfterItsJourney(t *testing.T) {
	srv := newIAMServer(t)
	for _, body := range []string{"", `{"lock":"orders/42"}`} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(method+" "+body, func(t *testing.T) {
				r, err := http.NewRequest(method, srv.URL+"/v1/a%20b/acquire?name=a%2Fb&name=a-b&x=%20", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				creds := aws.Credentials{AccessKeyID: role.ID, SecretAccessKey: role.Secret, SessionToken: role.SessionToken}
				if err := v4.NewSigner().SignHTTP(t.Context(), creds, r, hashHex(body), "execute-api", "us-east-1", time.Now()); err != nil {
					t.Fatal(err)
				}
				resp, err := srv.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("%s %q: %s", method, body, resp.Status)
				}
			})
		}
	}
}

// Older versions of curl (7.88 among them) sign path and query as they are, so
// the queries here are in canonical form: sorted, "%20" for a space, "=" after
// every name. The paths have nothing to encode. Nor do those versions get -G
// right: they hash the data as if it were the body.
func TestWhatCurlSignsVerifies(t *testing.T) {
	curl := rigor.Program(t, "curl")
	srv := newIAMServer(t)
	for name, args := range map[string][]string{
		"GET":             {srv.URL + "/v1/payments/lock?name=orders%2F42"},
		"sorted query":    {srv.URL + "/v1/payments/lock?a=1&b=%20%2F%C3%A9&c="},
		"POST":            {srv.URL + "/v1/payments/acquire", "-H", "Content-Type: application/json", "-d", `{"lock":"a"}`},
		"POST of nothing": {srv.URL + "/v1/payments/acquire", "-X", "POST"},
		"PUT":             {srv.URL + "/v1/payments/acquire", "-X", "PUT", "-d", "x=1"},
		"one more header": {srv.URL + "/", "-H", "X-Amz-Meta-Test:  two  words "},
		"a temporary key": {srv.URL + "/", "-H", "X-Amz-Security-Token: " + role.SessionToken, "-u", role.ID + ":" + role.Secret},
		"a root path":     {srv.URL},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-s", "-S", "--fail-with-body", "--aws-sigv4", "aws:amz:us-east-1:execute-api", "-u", alice.ID + ":" + alice.Secret}, args...)
			if out, err := exec.CommandContext(t.Context(), curl, args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// newIAMServer answers 200 to those that the authorizer lets pass.
func newIAMServer(t *testing.T) *httptest.Server {
	authorize := IAM("us-east-1", alice, role)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, err := authorize(r, body); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}
