package infra

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
)

// callers say who may do what: namespace/action, once for both authorizers.
var callers = map[string]struct {
	policies []string // under IAM
	scopes   string   // under JWT
	may      []string
}{
	"nobody":               {nil, "", nil},
	"a client":             {[]string{"payments/client"}, "payments/acquire payments/renew payments/release payments/read", []string{"payments/acquire", "payments/renew", "payments/release", "payments/read"}},
	"a client of another":  {[]string{"pay/client"}, "pay/acquire pay/renew pay/release pay/read", []string{"pay/acquire", "pay/renew", "pay/release", "pay/read"}},
	"a reader":             {[]string{"payments/reader"}, "payments/read", []string{"payments/read"}},
	"a breaker":            {[]string{"payments/breaker"}, "payments/read payments/break", []string{"payments/read", "payments/break"}},
	"a client that breaks": {[]string{"payments/client", "payments/breaker"}, "payments/acquire payments/renew payments/release payments/read payments/break", []string{"payments/acquire", "payments/renew", "payments/release", "payments/read", "payments/break"}},
	"a reader of two":      {[]string{"payments/reader", "pay/reader"}, "payments/read pay/read", []string{"payments/read", "pay/read"}},
}

// eachCall is every call in namespaces that look alike. No caller may do
// anything in the last three.
func eachCall(do func(namespace, action, method, path string)) {
	all, public := httplease.Routes()
	for _, key := range all {
		if slices.Contains(public, key) {
			continue
		}
		method, path, _ := strings.Cut(key, " ")
		for _, namespace := range []string{"payments", "pay", "payments-eu", "a", "default"} {
			do(namespace, path[strings.LastIndex(path, "/")+1:], method, strings.Replace(path, "{namespace}", namespace, 1))
		}
	}
}

func TestIAMPoliciesKeepNamespacesAndActionsApart(t *testing.T) {
	for _, stage := range []string{"", "prod"} {
		app := newApp()
		stack := awscdk.NewStack(app, jsii.String("Pawl"), nil)
		service := NewLockService(stack, "Lock", &LockServiceProps{
			Table: NewTable(stack, "Table", &TableProps{}), Code: code, Stage: stage, Namespaces: []string{"payments", "pay"},
		})
		x := read(t, app, stack)
		policies := make(map[string][]statement)
		for name, p := range service.Policies {
			id := *stack.GetLogicalId(p.Node().DefaultChild().(awscdk.CfnElement))
			policies[name] = statements(t, x.of("AWS::IAM::ManagedPolicy")[id])
		}
		if len(policies) != 6 || len(service.Tagged) != 3 {
			t.Fatalf("got policies %v", policies)
		}
		id, _ := x.one(t, "AWS::ApiGatewayV2::Api")
		segment := stage
		if stage == "" {
			segment = "$default"
		}
		for who, c := range callers {
			var has []statement
			for _, p := range c.policies {
				has = append(has, policies[p]...)
			}
			eachCall(func(namespace, action, method, path string) {
				resource := fmt.Sprintf("arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<%s>/%s/%s%s", id, segment, method, path)
				want := slices.Contains(c.may, namespace+"/"+action)
				if got := allows(t, has, "execute-api:Invoke", resource); got != want {
					t.Errorf("stage %q: %s may call %s %s: %v, want %v", stage, who, method, path, got, want)
				}
				if allows(t, has, "execute-api:ManageConnections", resource) {
					t.Errorf("%s may do more than call", who)
				}
			})
		}
	}
}

func TestTokenScopesKeepNamespacesAndActionsApartInTheSameWay(t *testing.T) {
	for who, c := range callers {
		h := &httplease.Handler{Service: new(memlease.Store), Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
		h.Caller = func(*http.Request) httplease.Caller {
			return httplease.Caller{Principal: "someone", Scopes: strings.Fields(c.scopes)}
		}
		eachCall(func(namespace, action, method, path string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			want := slices.Contains(c.may, namespace+"/"+action)
			if got := w.Code != http.StatusForbidden; got != want {
				t.Errorf("%s: %s %s is answered %d", who, method, path, w.Code)
			}
		})
	}
}

// A namespace is a tenant, of which there may be thousands.
func TestAPrincipalsTagIsItsNamespace(t *testing.T) {
	app := newApp()
	stack := awscdk.NewStack(app, jsii.String("Pawl"), nil)
	service := NewLockService(stack, "Lock", &LockServiceProps{Table: NewTable(stack, "Table", &TableProps{}), Code: code})
	x := read(t, app, stack)
	id, _ := x.one(t, "AWS::ApiGatewayV2::Api")
	may := map[string][]string{
		"client": {"acquire", "renew", "release", "read"}, "reader": {"read"}, "breaker": {"read", "break"},
	}
	for role, actions := range may {
		policy := statements(t, x.of("AWS::IAM::ManagedPolicy")[*stack.GetLogicalId(service.Tagged[role].Node().DefaultChild().(awscdk.CfnElement))])
		for _, tag := range []string{"", "payments", "pay", "payments/break", "a/../payments", "payments/acquire/x"} {
			has := tagged(policy, tag)
			eachCall(func(namespace, action, method, path string) {
				resource := fmt.Sprintf("arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<%s>/$default/%s%s", id, method, path)
				want := tag == namespace && slices.Contains(actions, action)
				if got := allows(t, has, "execute-api:Invoke", resource); got != want {
					t.Errorf("%s with the tag %q may call %s %s: %v, want %v", role, tag, method, path, got, want)
				}
			})
		}
	}
	if len(service.Tagged) != len(may) {
		t.Errorf("got %v", service.Tagged)
	}
}

// tagged puts a tag's value into policies, as IAM does; a statement with the tag
// that a principal has not applies to nothing.
func tagged(policies []statement, value string) (all []statement) {
	for _, s := range policies {
		var resources []string
		for _, r := range s.resources {
			with := strings.ReplaceAll(r, "${aws:PrincipalTag/pawl-namespace}", value)
			if value != "" || with == r {
				resources = append(resources, with)
			}
		}
		s.resources = resources
		all = append(all, s)
	}
	return all
}

func TestAsManyNamespacesAsAreAllowedFitIntoAStack(t *testing.T) {
	_, x := synth(t, func(_ *TableStackProps, a *APIStackProps) { a.Namespaces = numbered(maxNamespaces) })
	if n := len(x.of("AWS::IAM::ManagedPolicy")); n != 3*maxNamespaces+3 {
		t.Errorf("there are %d policies", n)
	}
	text, err := json.Marshal(x)
	outputs, _ := x["Outputs"].(map[string]any)
	if n := len(x["Resources"].(map[string]any)); err != nil || n > 450 || len(outputs) > 10 || len(text) > 900_000 {
		t.Errorf("%d resources of 500, %d outputs of 200, %d bytes of a million, %v", n, len(outputs), len(text), err)
	}
	for id, p := range x.of("AWS::IAM::ManagedPolicy") {
		if path := resolve(p["Path"]); path != "/pawl/<AWS::Region>/Pawl/" || x.output("Policies") != path {
			t.Errorf("%s is at %v, and the output says %v", id, path, x.output("Policies"))
		}
	}
}

func TestUnderJWTThereAreNoPoliciesThatWouldBeIgnored(t *testing.T) {
	if n := len(underJWT().of("AWS::IAM::ManagedPolicy")); n != 0 {
		t.Errorf("there are %d", n)
	}
}

func TestFunctionsMayMakeTheirCallsOnTheirTableAndNothingElse(t *testing.T) {
	_, sweeper := strong()
	_, api := defaults()
	for id, p := range api.of("AWS::IAM::Policy") {
		var did []string
		for _, s := range statements(t, p) {
			did = append(did, s.actions...)
			for _, r := range s.resources {
				if strings.Contains(r, "*") {
					t.Errorf("%s: resource %s", id, r)
				}
			}
			if s.actions[0] == "dynamodb:GetItem" && (len(s.resources) != 1 || !strings.Contains(s.resources[0], "PawlTable")) {
				t.Errorf("%s: the table is %v", id, s.resources)
			}
		}
		if want := []string{"logs:CreateLogStream", "logs:PutLogEvents", "dynamodb:GetItem", "dynamodb:UpdateItem"}; !slices.Equal(did, want) {
			t.Errorf("%s allows %v, want %v", id, did, want)
		}
	}
	_, p := sweeper.one(t, "AWS::IAM::Policy")
	got := make(map[string]string)
	for _, s := range statements(t, p) {
		got[strings.Join(s.actions, " ")] = fmt.Sprint(s.condition)
	}
	want := map[string]string{
		"logs:CreateLogStream logs:PutLogEvents": "<nil>",
		"dynamodb:DeleteItem dynamodb:Scan":      "<nil>",
		"dynamodb:GetItem dynamodb:PutItem":      "map[ForAllValues:StringEquals:map[dynamodb:LeadingKeys:[sweeper]]]", // its own place
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the sweeper may %v, want %v", got, want)
	}
	for name, x := range map[string]template{"sweeper": sweeper, "API": api, "JWT": underJWT()} {
		for _, kind := range []string{"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"} {
			for _, s := range x.statements(t, kind) {
				if strings.Contains(fmt.Sprint(s.actions, s.resources), "*") {
					t.Errorf("%s: a wildcard in %v on %v", name, s.actions, s.resources)
				}
			}
		}
	}
}
