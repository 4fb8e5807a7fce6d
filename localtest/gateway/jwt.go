package gateway

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// JWT returns an authorizer that accepts tokens of one issuer for one of
// several audiences, in "Authorization: Bearer <token>" or without "Bearer", and
// answers 401 with a challenge to all others. AWS finds the keys at the issuer;
// here they are given, and a token's header must name its key by [KeyID].
//
// The issuer must match; so must aud, or client_id in a token without aud; exp
// must be there and to come; nbf and iat, if there, must have passed, without
// leeway.
func JWT(issuer string, audiences []string, keys ...*rsa.PublicKey) Authorizer {
	a := jwtAuthorizer{
		keys:   map[string]*rsa.PublicKey{},
		claims: jwt.NewValidator(jwt.WithIssuer(issuer), jwt.WithAudience(audiences...), jwt.WithIssuedAt()),
	}
	for _, k := range keys {
		a.keys[KeyID(k)] = k
	}
	return a.authorize
}

type jwtAuthorizer struct {
	keys   map[string]*rsa.PublicKey
	claims *jwt.Validator
}

func (a *jwtAuthorizer) authorize(r *http.Request, _ []byte) (map[string]any, error) {
	words := strings.Fields(r.Header.Get("Authorization"))
	if len(words) > 0 && strings.EqualFold(words[0], "Bearer") {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, &Refusal{http.StatusUnauthorized, "Bearer", "no token"}
	}
	claims := jwt.MapClaims{}
	// Numbers are passed on as they are written.
	parser := jwt.NewParser(jwt.WithJSONNumber(), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(strings.Join(words, " "), claims, a.key)
	if err == nil {
		err = a.claims.Validate(awsClaims{claims})
	}
	if err != nil {
		challenge := `Bearer scope="" error="invalid_token" error_description="` + description(err) + `"`
		return nil, &Refusal{http.StatusUnauthorized, challenge, err.Error()}
	}
	// Scopes are those that a route demands; none does.
	return map[string]any{"jwt": map[string]any{"claims": claimStrings(claims), "scopes": nil}}, nil
}

// key returns the key that has signed a token, if its algorithm is one that HTTP
// APIs accept. AWS says "RSA-based" only; whether that includes RSASSA-PSS is left
// open, and not supported here.
func (a *jwtAuthorizer) key(token *jwt.Token) (any, error) {
	if _, ok := token.Method.(*jwt.SigningMethodRSA); !ok || token.Header["crit"] != nil {
		return nil, errors.New("not an algorithm of HTTP APIs, or one with extensions")
	}
	if len(token.Claims.(jwt.MapClaims)) == 0 {
		return nil, jwt.ErrTokenMalformed // null is no object either
	}
	id, _ := token.Header["kid"].(string)
	key, ok := a.keys[id]
	if !ok {
		return nil, errUnknownKey
	}
	return key, nil
}

var errUnknownKey = errors.New("not one of the issuer's keys")

// description is what AWS says of a token, in the order in which it looks.
func description(err error) string {
	for _, d := range []struct {
		err  error
		says string
	}{
		{jwt.ErrTokenMalformed, " is malformed"},
		{errUnknownKey, "'s key is not known"},
		{jwt.ErrTokenUnverifiable, "'s algorithm is not supported"},
		{jwt.ErrTokenSignatureInvalid, "'s signature is not valid"},
		{jwt.ErrTokenInvalidIssuer, " does not have a valid issuer"},
		{jwt.ErrTokenInvalidAudience, " does not have a valid audience"},
		{jwt.ErrTokenExpired, " has expired"},
	} {
		if errors.Is(err, d.err) {
			return "the token" + d.says
		}
	}
	return "the token is not valid yet"
}

// awsClaims are claims as AWS reads them: client_id stands for an audience that is
// missing; and what is missing or is of another type has a value that no issuer
// gives, so that it is refused for what it should have been.
type awsClaims struct{ jwt.MapClaims }

const nobody = "\x00"

func (c awsClaims) GetIssuer() (string, error) {
	if iss, _ := c.MapClaims.GetIssuer(); iss != "" {
		return iss, nil
	}
	return nobody, nil
}

func (c awsClaims) GetAudience() (jwt.ClaimStrings, error) {
	aud, err := c.MapClaims.GetAudience()
	if _, given := c.MapClaims["aud"]; !given {
		client, _ := c.MapClaims["client_id"].(string)
		aud = jwt.ClaimStrings{client}
	}
	if err != nil || strings.Join(aud, "") == "" {
		aud = jwt.ClaimStrings{nobody}
	}
	return aud, nil
}

func (c awsClaims) GetExpirationTime() (*jwt.NumericDate, error) {
	if exp, err := c.MapClaims.GetExpirationTime(); exp != nil && err == nil {
		return exp, nil
	}
	return jwt.NewNumericDate(time.Unix(0, 0)), nil
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
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claims))
	token.Header["kid"] = KeyID(&key.PublicKey)
	text, err := token.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("gateway: sign token: %w", err)
	}
	return text, nil
}

// KeyID returns the thumbprint of RFC 7638, by which tokens name their key.
func KeyID(key *rsa.PublicKey) string {
	e, n := encodePart(big.NewInt(int64(key.E)).Bytes()), encodePart(key.N.Bytes())
	jwk := fmt.Sprintf(`{"e":"%s","kty":"RSA","n":"%s"}`, e, n)
	sum := sha256.Sum256([]byte(jwk))
	return encodePart(sum[:])
}

func encodePart(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
