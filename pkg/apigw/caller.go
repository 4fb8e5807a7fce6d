package apigw

import "strings"

// A Caller is who sent a request, as API Gateway's authorizer found. The zero
// Caller is anonymous: the route has no authorizer, or its answer is one this
// package does not understand.
type Caller struct {
	// Principal names the caller for as long as it exists, whatever the session.
	// It is "" for an anonymous caller.
	//
	// Under IAM it is the caller's ARN, for an assumed role without the session
	// name: "arn:aws:sts::123456789012:assumed-role/Name". The role's own ARN
	// cannot be made from that, as it may have a path. Under JWT it is the claims
	// iss and sub with a "#" between them.
	Principal string

	// JWT says that Principal and Scopes come from a token.
	JWT bool

	// Scopes are what the token grants: its claims scope and scp. They are not
	// authorizer.jwt.scopes, which has only those that the route asks for.
	Scopes []string
}

// caller returns the one caller that a names. An answer from both authorizers,
// which API Gateway never gives, names none.
func (a Authorizer) caller() Caller {
	switch {
	case a.IAM != nil && a.JWT == nil:
		return Caller{Principal: withoutSession(a.IAM.UserARN)}
	case a.JWT != nil && a.IAM == nil:
		return a.JWT.caller()
	}
	return Caller{}
}

// withoutSession returns a caller's ARN without the session name, which whoever
// assumes a role chooses freely. Only assumed roles have one: the name of a
// federated user is all that tells it from others (IAM User Guide, "AWS global
// condition context keys", aws:PrincipalArn).
func withoutSession(arn string) string {
	parts := strings.SplitN(arn, ":", 6) // arn, partition, service, region, account, resource
	if len(parts) != 6 || parts[0] != "arn" {
		return ""
	}
	role, ok := strings.CutPrefix(parts[5], "assumed-role/")
	if !ok || parts[2] != "sts" {
		return arn // not searched for: the path of a user may contain ":assumed-role/"
	}
	name, _, _ := strings.Cut(role, "/")
	return strings.TrimSuffix(arn, role) + name
}

// caller returns the subject of t. An issuer with "#" in it would let two
// subjects share a Principal, and OpenID Connect allows none.
func (t JWT) caller() Caller {
	iss, _ := t.Claims["iss"].(string)
	sub, _ := t.Claims["sub"].(string)
	if iss == "" || sub == "" || strings.Contains(iss, "#") {
		return Caller{}
	}
	return Caller{
		Principal: iss + "#" + sub,
		JWT:       true,
		Scopes:    append(scopes(t.Claims["scope"]), scopes(t.Claims["scp"])...),
	}
}

// scopes reads a claim that is an array or its text, in brackets or not.
func scopes(claim any) (list []string) {
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
