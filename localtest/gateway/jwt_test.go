package gateway

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

var testKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err)
		}
	}
	return keys
})

const issuer = "https://issuer.example.com/"

// claims returns those of a good token, with some changed; nil removes one.
func claims(changes map[string]any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{"iss": issuer, "aud": "pawl", "sub": "alice", "exp": now + 60, "iat": now - 1, "nbf": now - 1}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func signJWT(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	token, err := SignJWT(key, claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// forge makes a token with any header and signature.
func forge(t *testing.T, header map[string]any, claims map[string]any, sign func(digested string) []byte) string {
	t.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed := encodePart(h) + "." + encodePart(c)
	return signed + "." + encodePart(sign(signed))
}

func signRSA(t *testing.T, key *rsa.PrivateKey, hash crypto.Hash) func(string) []byte {
	return func(signed string) []byte {
		h := hash.New()
		h.Write([]byte(signed))
		sig, err := rsa.SignPKCS1v15(rand.Reader, key, hash, h.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
}

func bearer(authorization string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestAGoodTokenPassesWithItsClaimsAsText(t *testing.T) {
	key := testKeys()[0]
	authorize := JWT(issuer, []string{"other", "pawl"}, &testKeys()[1].PublicKey, &key.PublicKey)
	token := signJWT(t, key, claims(map[string]any{
		"aud": []string{"pawl", "more"}, "exp": 4102444800, "iat": nil, "nbf": nil, "scope": "payments/acquire",
		"admin": true, "ratio": 0.25, "groups": []any{"a", "b", 3}, "of": map[string]any{"x": 1}, "empty": []any{}, "nothing": json.RawMessage("null"),
	}))
	for _, scheme := range []string{"Bearer ", "bearer ", ""} {
		t.Run(scheme, func(t *testing.T) {
			got, err := authorize(bearer(scheme+token), nil)
			if err != nil {
				t.Fatalf("%q: %v", scheme, err)
			}
			want := map[string]any{"jwt": map[string]any{"scopes": nil, "claims": map[string]string{
				"iss": issuer, "sub": "alice", "aud": "[pawl more]", "exp": "4102444800", "scope": "payments/acquire",
				"admin": "true", "ratio": "0.25", "groups": "[a b 3]", "of": `{"x":1}`, "empty": "[]",
			}}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestTokensOfAllRSAlgorithmsPass(t *testing.T) {
	key := testKeys()[0]
	authorize := JWT(issuer, []string{"pawl"}, &key.PublicKey)
	for alg, hash := range map[string]crypto.Hash{"RS256": crypto.SHA256, "RS384": crypto.SHA384, "RS512": crypto.SHA512} {
		token := forge(t, map[string]any{"alg": alg, "kid": KeyID(&key.PublicKey)}, claims(nil), signRSA(t, key, hash))
		if _, err := authorize(bearer("Bearer "+token), nil); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
	}
}

func TestATokenWithoutAudienceIsKnownByItsClient(t *testing.T) {
	key := testKeys()[0]
	authorize := JWT(issuer, []string{"pawl"}, &key.PublicKey)
	token := signJWT(t, key, claims(map[string]any{"aud": nil, "client_id": "pawl"}))
	if _, err := authorize(bearer(token), nil); err != nil {
		t.Error(err)
	}
}

func TestOtherTokensAreUnauthorized(t *testing.T) {
	key, other := testKeys()[0], testKeys()[1]
	kid := KeyID(&key.PublicKey)
	now := time.Now().Unix()
	good := signJWT(t, key, claims(nil))
	parts := strings.Split(good, ".")
	with := func(changes map[string]any) string { return signJWT(t, key, claims(changes)) }
	none := func(string) []byte { return nil }
	hs256 := func(signed string) []byte {
		h := hmac.New(sha256.New, key.N.Bytes()) // the public key as a secret, an old trick
		h.Write([]byte(signed))
		return h.Sum(nil)
	}
	rs256 := signRSA(t, key, crypto.SHA256)
	tampered := encodePart([]byte(`{"iss":"` + issuer + `","aud":"pawl","exp":4102444800,"sub":"bob"}`))
	for name, c := range map[string]struct{ token, description string }{
		"no token":                          {"", ""},
		"a scheme alone":                    {"Bearer ", ""},
		"not a token":                       {"abc", "malformed"},
		"two parts":                         {parts[0] + "." + parts[1], "malformed"},
		"four parts":                        {good + ".x", "malformed"},
		"a signature's other form":          {good + "=", "malformed"},
		"no claims":                         {parts[0] + "." + encodePart([]byte("null")) + "." + parts[2], "malformed"},
		"other claims":                      {parts[0] + "." + tampered + "." + parts[2], "signature"},
		"no signature":                      {parts[0] + "." + parts[1] + ".", "signature"},
		"alg none":                          {forge(t, map[string]any{"alg": "none", "kid": kid}, claims(nil), none), "algorithm"},
		"no alg":                            {forge(t, map[string]any{"kid": kid}, claims(nil), rs256), "algorithm"},
		"HS256 by the public key":           {forge(t, map[string]any{"alg": "HS256", "kid": kid}, claims(nil), hs256), "algorithm"},
		"RS256 said to be RS512":            {forge(t, map[string]any{"alg": "RS512", "kid": kid}, claims(nil), rs256), "signature"},
		"a critical extension":              {forge(t, map[string]any{"alg": "RS256", "kid": kid, "crit": []string{"x"}}, claims(nil), rs256), "algorithm"},
		"another key":                       {signJWT(t, other, claims(nil)), "key"},
		"another key, same name":            {forge(t, map[string]any{"alg": "RS256", "kid": kid}, claims(nil), signRSA(t, other, crypto.SHA256)), "signature"},
		"no key named":                      {forge(t, map[string]any{"alg": "RS256"}, claims(nil), rs256), "key"},
		"another issuer":                    {with(map[string]any{"iss": "https://other.example.com"}), "issuer"},
		"no issuer":                         {with(map[string]any{"iss": nil}), "issuer"},
		"another audience":                  {with(map[string]any{"aud": "other"}), "audience"},
		"no audience":                       {with(map[string]any{"aud": nil}), "audience"},
		"an audience list of others":        {with(map[string]any{"aud": []string{"a", "b"}}), "audience"},
		"client_id beside another audience": {with(map[string]any{"aud": "other", "client_id": "pawl"}), "audience"},
		"expired":                           {with(map[string]any{"exp": now}), "expired"},
		"no expiry":                         {with(map[string]any{"exp": nil}), "expired"},
		"an expiry in words":                {with(map[string]any{"exp": "tomorrow"}), "expired"},
		"not yet valid":                     {with(map[string]any{"nbf": now + 60}), "yet"},
		"nbf in words":                      {with(map[string]any{"nbf": "now"}), "yet"},
		"from the future":                   {with(map[string]any{"iat": now + 60}), "yet"},
	} {
		t.Run(name, func(t *testing.T) {
			authorization := c.token
			if c.description != "" {
				authorization = "Bearer " + c.token
			}
			got, err := JWT(issuer, []string{"pawl"}, &key.PublicKey)(bearer(authorization), nil)
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Status != http.StatusUnauthorized {
				t.Fatalf("got %v, %v, want a refusal with 401", got, err)
			}
			if c.description == "" && refusal.Challenge != "Bearer" ||
				c.description != "" && !strings.HasPrefix(refusal.Challenge, `Bearer scope="" error="invalid_token" error_description="the token`) ||
				!strings.Contains(refusal.Challenge, c.description) {
				t.Errorf("challenge %q, want it to say %q", refusal.Challenge, c.description)
			}
		})
	}
}

// The example of RFC 7638, section 3.1.
func TestAKeysNameIsItsThumbprint(t *testing.T) {
	n := "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
	key := rsa.PublicKey{N: decodeInt(t, n), E: 65537}
	if got, want := KeyID(&key), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func decodeInt(t *testing.T, s string) *big.Int {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(b)
}
