package infra

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

var (
	stageName     = regexp.MustCompile(`^(\$default|[A-Za-z0-9_-]{1,128})$`)
	namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// maxNamespaces is how many namespaces can have policies of their own: there are
// three for each, and a stack has at most 500 resources.
const maxNamespaces = 100

// mostConcurrent is far above what accounts have: 1,000, or 10 when they are new.
const mostConcurrent = 10_000

// validate checks the configuration of an API in the Region home, which is "" if
// it is not known yet.
func (p *LockServiceProps) validate(home string, now time.Time) error {
	var e errorsIn
	if p.Code == "" {
		e.add(wrong("Code", "is required: the directory with the function's bootstrap, see make build"))
	}
	e.matches("Region", home, regionName, "the name of a Region, as eu-west-1")
	e.rules(p.Rules, now)
	e.stage(p.stage())
	e.retention(p.LogRetentionDays)
	e.arn("AlarmTopicARN", p.AlarmTopicARN, topic, home)
	e.size("Acquire", p.Acquire)
	e.size("Rest", p.Rest)
	e.throttles(p)
	if p.JWT != nil {
		e.jwt(p.JWT)
	}
	e.namespaces(p)
	if d := p.Domain; d != nil {
		e.matches("Domain.Name", d.Name, domainName, "a name in lower case, as locks.example.com, without https:// and wildcard")
		e.arn("Domain.CertificateARN", d.CertificateARN, certificate, home)
		if d.Name == "" || d.CertificateARN == "" {
			e.add(wrong("Domain", "needs its name and the ARN of its certificate"))
		}
	}
	return e.err()
}

func (e *errorsIn) size(function string, f FunctionProps) {
	e.between(function+".Memory", f.Memory, 128, 10_240, "MB")
	e.between(function+".Concurrency", f.Concurrency, -mostConcurrent, mostConcurrent, "calls at a time")
}

func (e *errorsIn) jwt(j *JWT) {
	if u, err := url.Parse(j.Issuer); !open(j.Issuer) && (err != nil || u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.TrimSpace(j.Issuer) != j.Issuer) {
		e.add(wrong("JWT.Issuer", "is %q, want a URL with https and a host, as in the tokens", j.Issuer))
	}
	if len(j.Audience) == 0 {
		e.add(wrong("JWT.Audience", "is empty, want what the tokens are made for"))
	}
	e.distinct("JWT.Audience", j.Audience)
	if j.ScopeClaim != "" && !settings.GrantingClaim(j.ScopeClaim) {
		e.add(wrong("JWT.ScopeClaim", "is %q, want a claim that says what its bearer may do, not who it is", j.ScopeClaim))
	}
}

func (e *errorsIn) namespaces(p *LockServiceProps) {
	if p.JWT != nil && len(p.Namespaces) > 0 {
		e.add(wrong("Namespaces", "are for IAM policies; under JWT, what a caller may do is in the scopes of the token"))
	}
	if n := len(p.Namespaces); n > maxNamespaces {
		e.add(wrong("Namespaces", "are %d, and a stack has room for the policies of %d: use those by the principal's tag %s, "+
			"which are for all namespaces", n, maxNamespaces, NamespaceTag))
	}
	e.distinct("Namespaces", p.Namespaces)
	for _, n := range p.Namespaces {
		// A namespace goes into IAM policies, where "*" would mean all.
		e.matches("Namespaces", n, namespaceName, "a namespace: up to 63 lower-case letters, digits, and - between them")
	}
}

// rules are checked here because the function would notice only when it starts,
// and then answer nothing but 500.
func (e *errorsIn) rules(r protocol.Rules, now time.Time) {
	if r.Retention != 0 {
		e.add(wrong("Rules.Retention", "the retention of idle locks cannot be configured"))
	}
	if err := r.Validate(now); err != nil {
		e.add(wrong("Rules", "%v", err))
	}
}

// stage refuses one that is called like the first segment of a route: package
// apigw cuts the stage off the front of paths.
func (e *errorsIn) stage(name string) {
	e.matches("Stage", name, stageName, "letters, digits, _ and -")
	all, _ := httplease.Routes()
	for _, key := range all {
		if _, path, _ := strings.Cut(key, " "); strings.HasPrefix(path+"/", "/"+name+"/") {
			e.add(wrong("Stage", "cannot be %q: on a custom domain %s would lose its first segment", name, path))
			return
		}
	}
}

// throttles checks that no route lets in more than the function behind it can
// take at once. Lambda refuses what is too much with a 5xx, which leaves open
// whether the call has taken effect; the gateway with a 429, which does not.
func (e *errorsIn) throttles(p *LockServiceProps) {
	all, _ := httplease.Routes()
	for key, t := range p.Throttles {
		if key != "" && !slices.Contains(all, key) {
			e.add(wrong("Throttles", "%q is no route: want one of %q", key, all))
		}
		if !(t.Rate > 0 && t.Rate <= 10_000) || t.Burst <= 0 { // NaN is not
			e.add(wrong("Throttles", "of %q is %v a second and %d at once: want both above 0, and at most 10000 a second",
				key, t.Rate, t.Burst))
			return
		}
	}
	throttles := p.throttles()
	for name, size := range map[string]FunctionProps{"Acquire": p.Acquire, "Rest": p.Rest} {
		sum, routes := 0, 0
		for _, key := range all {
			if behind(key) == name {
				sum, routes = sum+throttles[key].Burst, routes+1
			}
		}
		switch limit := size.concurrent(); {
		case limit < routes:
			e.add(wrong(name+".Concurrency", "is %d, and %d routes lead there: each needs one call at a time",
				size.Concurrency, routes))
		case sum > limit:
			e.add(wrong("Throttles", "the routes to %s take bursts of %d calls together, and it answers %d at a time",
				name, sum, limit))
		}
	}
}
