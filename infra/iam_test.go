package infra

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A statement of an IAM policy, with references written as "<Id>" and
// "<Id.Attribute>".
type statement struct {
	effect             string
	actions, resources []string
	condition          any
}

// statements returns those of all policies of a type.
func (x template) statements(t testing.TB, kind string) (all []statement) {
	t.Helper()
	for _, p := range x.of(kind) {
		all = append(all, statements(t, p)...)
	}
	return all
}

// statements reads a policy. What it does not understand it refuses: a test
// must not take a policy for narrower than it is.
func statements(t testing.TB, policy props) (all []statement) {
	t.Helper()
	for _, s := range policy.at("PolicyDocument", "Statement").([]any) {
		one := statement{}
		for name, value := range s.(map[string]any) {
			switch name {
			case "Effect":
				one.effect = value.(string)
			case "Action":
				one.actions = texts(value)
			case "Resource":
				one.resources = texts(value)
			case "Condition":
				one.condition = resolve(value)
			default:
				t.Fatalf("a statement has %s", name)
			}
		}
		all = append(all, one)
	}
	return all
}

func texts(value any) (all []string) {
	if list, ok := value.([]any); ok {
		for _, v := range list {
			all = append(all, fmt.Sprint(resolve(v)))
		}
		return all
	}
	return []string{fmt.Sprint(resolve(value))}
}

// resolve replaces the functions of CloudFormation.
func resolve(value any) any {
	switch v := value.(type) {
	case []any:
		var all []any
		for _, one := range v {
			all = append(all, resolve(one))
		}
		return all
	case map[string]any:
		if ref, ok := v["Ref"]; ok {
			return fmt.Sprintf("<%v>", ref)
		}
		if get, ok := v["Fn::GetAtt"].([]any); ok {
			return fmt.Sprintf("<%v.%v>", get[0], get[1])
		}
		if export, ok := v["Fn::ImportValue"]; ok {
			return fmt.Sprintf("<%v>", export)
		}
		if pick, ok := v["Fn::Select"].([]any); ok {
			return fmt.Sprintf("<%v>", resolve(pick[1]))
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			return strings.Join(texts(join[1]), join[0].(string))
		}
		all := make(map[string]any)
		for name, one := range v {
			all[name] = resolve(one)
		}
		return all
	}
	return value
}

// allows evaluates policies as IAM does: everything is denied that is not
// allowed, and what is denied is denied. "*" stands for any text, with slashes
// in it too, and "?" for one character.
func allows(t testing.TB, policies []statement, action, resource string) bool {
	t.Helper()
	allowed := false
	for _, s := range policies {
		if s.condition != nil {
			t.Fatalf("there is a condition: %v", s.condition)
		}
		if !matchesOne(s.actions, strings.ToLower(action), strings.ToLower) || !matchesOne(s.resources, resource, strings.Clone) {
			continue
		}
		switch s.effect {
		case "Allow":
			allowed = true
		case "Deny":
			return false
		default:
			t.Fatalf("the effect is %q", s.effect)
		}
	}
	return allowed
}

func matchesOne(patterns []string, text string, form func(string) string) bool {
	for _, p := range patterns {
		p = regexp.QuoteMeta(form(p))
		p = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(p)
		if regexp.MustCompile(`^(?s:` + p + `)$`).MatchString(text) {
			return true
		}
	}
	return false
}

func TestPoliciesAreEvaluatedAsIAMDoes(t *testing.T) {
	policies := []statement{
		{effect: "Allow", actions: []string{"execute-api:Invoke"}, resources: []string{"api/POST/v1/a/*", "api/POST/v1/?/read"}},
		{effect: "Allow", actions: []string{"s3:Get*"}, resources: []string{"*"}},
		{effect: "Deny", actions: []string{"*"}, resources: []string{"*/break"}},
	}
	for call, want := range map[[2]string]bool{
		{"execute-api:Invoke", "api/POST/v1/a/renew"}: true,
		{"EXECUTE-API:invoke", "api/POST/v1/a/renew"}: true,
		{"execute-api:Invoke", "api/POST/v1/a/b/c"}:   true,
		{"execute-api:Invoke", "api/POST/v1/b/renew"}: false,
		{"execute-api:Invoke", "api/POST/v1/A/renew"}: false,
		{"execute-api:Invoke", "api/POST/v1/a/break"}: false,
		{"execute-api:Invoke", "api/POST/v1/b/read"}:  true,
		{"execute-api:Invoke", "api/POST/v1/bb/read"}: false,
		{"s3:GetObject", "anything"}:                  true,
		{"s3:PutObject", "anything"}:                  false,
	} {
		if got := allows(t, policies, call[0], call[1]); got != want {
			t.Errorf("%v: %v, want %v", call, got, want)
		}
	}
}
