package apigw

import (
	"encoding/json"
	"strings"
	"unicode"
)

// An Authorizer is what API Gateway found out about the caller. Its two methods
// name the caller, each for its own kind of authorizer.
//
// The zero Authorizer names nobody. So does an answer of another kind of
// authorizer, of two at once, or of one that is not written as API Gateway
// writes it. A function must know from its configuration which kind its routes
// have, and ask for that kind only: a caller is never guessed from an event.
type Authorizer struct {
	userARN string
	claims  map[string]any
}

// UnmarshalJSON reads the member "authorizer" of an event. It fails for no
// input: what it does not understand is nobody.
func (a *Authorizer) UnmarshalJSON(text []byte) error {
	*a = Authorizer{}
	// A map, because encoding/json matches the fields of a struct in any case.
	var kinds map[string]json.RawMessage
	if json.Unmarshal(text, &kinds) != nil {
		return nil
	}
	for kind, answer := range kinds {
		if string(answer) == "null" {
			delete(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		return nil
	}
	var members map[string]any
	for _, kind := range []string{"iam", "jwt"} {
		if answer, ok := kinds[kind]; ok && json.Unmarshal(answer, &members) == nil {
			if kind == "iam" {
				a.userARN, _ = members["userArn"].(string)
			} else {
				a.claims, _ = members["claims"].(map[string]any)
			}
		}
	}
	return nil
}

// IAM names the caller that signed with an AWS key, for as long as it exists
// and whatever its session. It returns "" for nobody.
//
// The name is the caller's ARN, for an assumed role without the session name:
// "arn:aws:sts::123456789012:assumed-role/Name". The role's own ARN cannot be
// made from that, as it may have a path.
func (a Authorizer) IAM() (principal string) {
	parts := strings.SplitN(a.userARN, ":", 6) // arn, partition, service, region, account, resource
	if len(parts) != 6 || parts[0] != "arn" || parts[4] == "" || parts[5] == "" {
		return ""
	}
	// Whoever assumes a role chooses the session name freely. Only assumed roles
	// have one: the name of a federated user is all that tells it from others (IAM
	// User Guide, "AWS global condition context keys", aws:PrincipalArn).
	switch role, assumed := strings.CutPrefix(parts[5], "assumed-role/"); {
	case parts[2] == "sts" && assumed:
		name, _, _ := strings.Cut(role, "/")
		if name == "" {
			return ""
		}
		return strings.TrimSuffix(a.userARN, role) + name
	case parts[2] == "sts" || parts[2] == "iam":
		return a.userARN
	}
	return ""
}

// clientClaims name the client that a token was issued to, where it has no
// subject: RFC 9068 and Cognito, OpenID Connect, Entra ID.
var clientClaims = []string{"client_id", "azp", "appid"}

// JWT names the caller that showed a token, and what the token grants. It
// returns "" for nobody.
//
// The name is the claim iss with the claim sub, as "iss#sub". Issuers leave out
// sub in tokens of a client of its own; such a caller is "iss client#id", of the
// first claim of client_id, azp and appid that is a text. No subject has such a
// name, since an issuer with a space or a "#" in it is refused.
//
// Scopes come from the claims scope, scp and those in more, each a text with
// spaces or an array; what is neither grants nothing, nor does a claim "". API Gateway writes the
// array ["a b"] like the array ["a", "b"]: an issuer must not let users write
// spaces into an element.
func (a Authorizer) JWT(more ...string) (principal string, scopes []string) {
	text := func(claim string) string { s, _ := a.claims[claim].(string); return s }
	iss := text("iss")
	if iss == "" || strings.ContainsFunc(iss, func(r rune) bool { return r == '#' || unicode.IsSpace(r) }) {
		return "", nil
	}
	switch sub := a.claims["sub"].(type) {
	case nil:
	case string:
		if sub != "" {
			principal = iss + "#" + sub
		}
	default:
		return "", nil // a subject that API Gateway would have written as text
	}
	for _, claim := range clientClaims {
		if id := text(claim); id != "" && principal == "" {
			principal = iss + " client#" + id
		}
	}
	if principal == "" {
		return "", nil
	}
	for _, claim := range append([]string{"scope", "scp"}, more...) {
		if claim != "" {
			scopes = append(scopes, granted(a.claims[claim])...)
		}
	}
	return principal, scopes
}

// granted reads a claim that is an array or its text, in brackets or not.
func granted(claim any) (list []string) {
	switch c := claim.(type) {
	case string:
		if strings.HasPrefix(c, "[") && strings.HasSuffix(c, "]") {
			c = c[1 : len(c)-1]
		}
		return strings.Fields(c)
	case []any:
		for _, v := range c {
			if s, ok := v.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}
