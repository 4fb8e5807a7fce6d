package gateway

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // RS384 and RS512
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"
)

// rsaAlgorithms are the algorithms that HTTP APIs accept. AWS says "RSA-based"
// only; whether that includes RSASSA-PSS is left open, and not supported here.
var rsaAlgorithms = map[string]crypto.Hash{
	"RS256": crypto.SHA256,
	"RS384": crypto.SHA384,
	"RS512": crypto.SHA512,
}

// JWT returns an authorizer that accepts tokens of one issuer for one of
// several audiences, in "Authorization: Bearer <token>" or without "Bearer", and
// answers 401 with a challenge to all others. AWS finds the keys at the issuer;
// here they are given, and a token's header must name its key by [KeyID].
//
// The issuer must match; so must aud, or client_id in a token without aud; exp
// must be there and to come; nbf and iat, if there, must have passed, without
// leeway.
func JWT(issuer string, audiences []string, keys ...*rsa.PublicKey) Authorizer {
	a := jwtAuthorizer{issuer, audiences, map[string]*rsa.PublicKey{}, time.Now}
	for _, k := range keys {
		a.keys[KeyID(k)] = k
	}
	return a.authorize
}

type jwtAuthorizer struct {
	issuer    string
	audiences []string
	keys      map[string]*rsa.PublicKey
	now       func() time.Time
}

func (a *jwtAuthorizer) authorize(r *http.Request, _ []byte) (map[string]any, error) {
	words := strings.Fields(r.Header.Get("Authorization"))
	if len(words) > 0 && strings.EqualFold(words[0], "Bearer") {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, &Refusal{http.StatusUnauthorized, "Bearer", "no token"}
	}
	claims, err := a.verify(strings.Join(words, " "))
	if err == nil {
		err = a.check(claims)
	}
	if err != nil {
		challenge := `Bearer scope="" error="invalid_token" error_description="` + err.Error() + `"`
		return nil, &Refusal{http.StatusUnauthorized, challenge, err.Error()}
	}
	// Scopes are those that a route demands; none does.
	return map[string]any{"jwt": map[string]any{"claims": claimStrings(claims), "scopes": nil}}, nil
}

// verify returns the claims of a token that one of the keys has signed.
func (a *jwtAuthorizer) verify(token string) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("the token is malformed")
	}
	var header struct {
		Alg, Kid string
		Crit     []string
	}
	var claims map[string]any
	sig, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err := errors.Join(err, decodePart(parts[0], &header), decodePart(parts[1], &claims)); err != nil || claims == nil {
		return nil, errors.New("the token is malformed")
	}
	hash, ok := rsaAlgorithms[header.Alg]
	if !ok || header.Crit != nil {
		return nil, errors.New("the token's algorithm is not supported")
	}
	key, ok := a.keys[header.Kid]
	if !ok {
		return nil, errors.New("the token's key is not known")
	}
	h := hash.New()
	h.Write([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(key, hash, h.Sum(nil), sig) != nil {
		return nil, errors.New("the token's signature is not valid")
	}
	return claims, nil
}

func decodePart(part string, into any) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // numbers are passed on as they are written
	return d.Decode(into)
}

// check checks the claims in the order that AWS documents.
func (a *jwtAuthorizer) check(claims map[string]any) error {
	if claims["iss"] != any(a.issuer) {
		return errors.New("the token does not have a valid issuer")
	}
	audience, ok := claims["aud"]
	if !ok {
		audience = claims["client_id"]
	}
	list, ok := audience.([]any)
	if !ok {
		list = []any{audience}
	}
	if !slices.ContainsFunc(a.audiences, func(s string) bool { return slices.Contains(list, any(s)) }) {
		return errors.New("the token does not have a valid audience")
	}
	now := a.now()
	if exp, ok := claimTime(claims["exp"]); !ok || !now.Before(exp) {
		return errors.New("the token has expired")
	}
	for _, name := range []string{"nbf", "iat"} {
		if value, ok := claims[name]; ok {
			if from, ok := claimTime(value); !ok || now.Before(from) {
				return errors.New("the token is not valid yet")
			}
		}
	}
	return nil
}

func claimTime(claim any) (time.Time, bool) {
	n, ok := claim.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := n.Float64()
	return time.UnixMilli(int64(seconds * 1000)), err == nil
}

// claimStrings returns the claims as the event has them: numbers and booleans
// as text, arrays as "[a b]", objects as JSON, and none that is null.
func claimStrings(claims map[string]any) map[string]string {
	s := map[string]string{}
	for name, value := range claims {
		if value != nil {
			s[name] = claimString(value)
		}
	}
	return s
}

func claimString(claim any) string {
	switch claim := claim.(type) {
	case []any:
		elements := make([]string, len(claim))
		for i, element := range claim {
			elements[i] = claimString(element)
		}
		return "[" + strings.Join(elements, " ") + "]"
	case map[string]any:
		object, _ := json.Marshal(claim) // it was JSON
		return string(object)
	}
	return fmt.Sprint(claim)
}

// SignJWT returns an RS256 token with these claims, for tests and for a server
// on one machine.
func SignJWT(key *rsa.PrivateKey, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("gateway: sign token: %w", err)
	}
	header := `{"alg":"RS256","typ":"JWT","kid":"` + KeyID(&key.PublicKey) + `"}`
	token := encodePart([]byte(header)) + "." + encodePart(payload)
	digest := sha256.Sum256([]byte(token))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("gateway: sign token: %w", err)
	}
	return token + "." + encodePart(sig), nil
}

// KeyID returns the thumbprint of RFC 7638, by which tokens name their key.
func KeyID(key *rsa.PublicKey) string {
	jwk := fmt.Sprintf(`{"e":"%s","kty":"RSA","n":"%s"}`, encodePart(big.NewInt(int64(key.E)).Bytes()), encodePart(key.N.Bytes()))
	sum := sha256.Sum256([]byte(jwk))
	return encodePart(sum[:])
}

func encodePart(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
