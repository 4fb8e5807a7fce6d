package infra

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
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
		if len(policies) != 6 {
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
		h := &httplease.Handler{Service: new(lease.Memory), Log: slog.New(slog.DiscardHandler), Caller: httplease.Anyone}
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

func TestEachPolicyIsAnOutput(t *testing.T) {
	_, x := defaults()
	named := make(map[string]bool)
	for _, o := range x["Outputs"].(map[string]any) {
		named[fmt.Sprint(o.(map[string]any)["Description"])] = true
	}
	for _, name := range []string{"default/client", "default/reader", "default/breaker"} {
		if !named["IAM policy "+name] {
			t.Errorf("%s is not among %v", name, named)
		}
	}
}

func TestUnderJWTThereAreNoPoliciesThatWouldBeIgnored(t *testing.T) {
	if n := len(underJWT().of("AWS::IAM::ManagedPolicy")); n != 0 {
		t.Errorf("there are %d", n)
	}
}

func TestFunctionsMayMakeTheirCallsOnTheirTableAndNothingElse(t *testing.T) {
	table, _ := strong()
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
	_, p := table.one(t, "AWS::IAM::Policy")
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
	for name, x := range map[string]template{"table": table, "API": api, "JWT": underJWT()} {
		for _, kind := range []string{"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"} {
			for _, s := range x.statements(t, kind) {
				if strings.Contains(fmt.Sprint(s.actions, s.resources), "*") {
					t.Errorf("%s: a wildcard in %v on %v", name, s.actions, s.resources)
				}
			}
		}
	}
}
