package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/infra"
)

// prefix is what the names of all our parameters start with in the context.
const prefix = "pawl:"

// parameters are read once each, by name. Errors are kept for the end, so that
// all of them can be told at once.
type parameters struct {
	given map[string]string
	known map[string]bool
	errs  []error
}

func newParameters(context map[string]any) *parameters {
	p := &parameters{given: make(map[string]string), known: make(map[string]bool)}
	for _, name := range slices.Sorted(maps.Keys(context)) {
		value := context[name]
		if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
			continue
		}
		short := name[len(prefix):]
		if name[:len(prefix)] != prefix {
			p.errs = append(p.errs, fmt.Errorf("%s is no parameter of this app: they start with %s, in lower case", name, prefix))
			continue
		}
		switch v := value.(type) {
		case float64: // from JSON: fmt would write it with an exponent
			p.given[short] = strconv.FormatFloat(v, 'f', -1, 64)
		case string, bool:
			p.given[short] = fmt.Sprint(v)
		default:
			p.known[short] = true
			p.wrong(short, "is %v, want a text, a number, true or false; a list is a text with commas", v)
		}
	}
	return p
}

func (p *parameters) wrong(name, reason string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(prefix+name+" "+reason, args...))
}

// text returns a parameter. What is given must not be empty: that could mean the
// default, or nothing at all.
func (p *parameters) text(name string) string {
	text, given := p.given[name]
	if given && !p.known[name] && strings.TrimSpace(text) != text || given && text == "" {
		p.wrong(name, "is %q, want no spaces around it, and something between them", text)
	}
	p.known[name] = true
	return text
}

func (p *parameters) list(name string) []string {
	text := p.text(name)
	if text == "" {
		return nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			p.wrong(name, "is %q: an element is empty", text)
			return nil
		}
	}
	return list
}

func (p *parameters) number(name string) (n float64) {
	if text := p.text(name); text != "" {
		var err error
		if n, err = strconv.ParseFloat(text, 64); err != nil || n == 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			p.wrong(name, "is %q, want a number that is not 0", text)
			return 0
		}
	}
	return n
}

// most is the end of the year 2100, in ms: far below what overflows.
const most = 4_133_980_800_000

func (p *parameters) integer(name string) int {
	n := p.number(name)
	if n != math.Trunc(n) || math.Abs(n) > most {
		p.wrong(name, "is %v, want a whole number that is not as large", n)
		return 0
	}
	return int(n)
}

// duration returns a number of units. None of our durations can be negative.
func (p *parameters) duration(name string, unit time.Duration) time.Duration {
	n := p.integer(name)
	if n < 0 || time.Duration(n) > math.MaxInt64/unit {
		p.wrong(name, "is %d, want more than 0, and less", n)
		return 0
	}
	return time.Duration(n) * unit
}

func (p *parameters) instant(name string) (t time.Time) {
	if n := p.integer(name); n != 0 {
		t = time.UnixMilli(int64(n))
	}
	return t
}

func (p *parameters) yes(name string) bool {
	switch text := p.text(name); text {
	case "true":
		return true
	case "", "false":
		return false
	default:
		p.wrong(name, "is %q, want true or false", text)
		return false
	}
}

// exclude refuses parameters that would be ignored, and why.
func (p *parameters) exclude(reason string, names ...string) {
	for _, name := range names {
		if p.given[name] != "" {
			p.wrong(name, "would be ignored: %s", reason)
		}
	}
}

// together refuses one of several without the others.
func (p *parameters) together(names ...string) {
	for _, name := range names {
		if p.given[name] == "" && slices.ContainsFunc(names, func(other string) bool { return p.given[other] != "" }) {
			p.wrong(name, "is missing: it goes together with %s%s", prefix, strings.Join(names, " and "+prefix))
		}
	}
}

// err reports what was wrong, and what nobody asked for: a limit with a typing
// error in its name would silently not be one.
func (p *parameters) err() error {
	errs := p.errs
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		if !p.known[name] {
			errs = append(errs, fmt.Errorf("%s%s is no parameter of this app", prefix, name))
		}
	}
	return once(errs)
}

// once joins errors. What is read for two functions is wrong for both.
func once(errs []error) error {
	told := make(map[string]bool)
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		again := told[err.Error()]
		told[err.Error()] = true
		return again
	})...)
}

// parameterOf are the parameters that fields of package infra are set by.
var parameterOf = map[string]string{
	"Region": "region", "TableName": "table", "Name": "table-name", "KeyARN": "table-key-arn",
	"AWSManagedKey": "aws-managed-key", "Consistency": "consistency", "Replicas": "replicas", "Witness": "witness",
	"ReplicaKeyARNs": "replica-key-arns", "Namespaces": "namespaces", "Stage": "stage",
	"Rules":      "max-ttl-ms, max-lock-delay-ms, skew-ms, restored-at-ms, quarantine-end-ms",
	"JWT.Issuer": "jwt-issuer", "JWT.Audience": "jwt-audience", "JWT.ScopeClaim": "jwt-scope-claim",
	"Domain": "domain, certificate-arn", "Domain.Name": "domain", "Domain.CertificateARN": "certificate-arn",
	"Throttles": "rate, burst", "Acquire.Memory": "memory-mb", "Rest.Memory": "memory-mb",
	"Acquire.Concurrency": "acquire-concurrency", "Rest.Concurrency": "concurrency",
	"Every": "sweep-minutes", "Rate": "sweep-rate", "LogRetentionDays": "log-retention-days",
	"AlarmTopicARN": "alarm-topic-arn",
}

// named says of what package infra has refused which parameters it came from.
func named(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range all.Unwrap() {
			errs = append(errs, named(one))
		}
		return once(errs)
	}
	var field *infra.FieldError
	if !errors.As(err, &field) || parameterOf[field.Field] == "" {
		return err
	}
	names := prefix + strings.ReplaceAll(parameterOf[field.Field], ", ", ", "+prefix)
	return fmt.Errorf("%s: %s", names, field.Reason)
}
