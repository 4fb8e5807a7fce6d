package infra

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// A FieldError says which field of the props is wrong, and why: "Stage" or
// "Acquire.Memory".
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return "infra: " + e.Field + ": " + e.Reason }

func wrong(field, reason string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(reason, args...)}
}

// errorsIn keeps what is wrong, so that all of it can be told at once.
type errorsIn []error

func (e *errorsIn) add(err error) { *e = append(*e, err) }

func (e *errorsIn) err() error { return errors.Join(*e...) }

// What AWS takes. The first is a part of IAM policies, where "*" would mean all.
var (
	tableName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	regionName = regexp.MustCompile(`^[a-z]{2,4}-([a-z]+-)+[0-9]+$`)
	domainName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

	topic       = resource{"sns", "arn:aws:sns:REGION:ACCOUNT:NAME", regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)}
	key         = resource{"kms", "arn:aws:kms:REGION:ACCOUNT:key/ID", regexp.MustCompile(`^key/[A-Za-z0-9-]{1,64}$`)}
	certificate = resource{"acm", "arn:aws:acm:REGION:ACCOUNT:certificate/ID", regexp.MustCompile(`^certificate/[A-Za-z0-9-]{1,64}$`)}

	retentionDays = []int{
		1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
	}
)

// open reports that only the deployment knows a value: a token of the CDK.
func open(s string) bool { return s != "" && *awscdk.Token_IsUnresolved(jsii.String(s)) }

// matches checks a text that may be empty, or open.
func (e *errorsIn) matches(field, text string, form *regexp.Regexp, want string) {
	if text != "" && !open(text) && !form.MatchString(text) {
		e.add(wrong(field, "is %q, want %s", text, want))
	}
}

// A resource is a kind that has ARNs.
type resource struct {
	service, want string
	name          *regexp.Regexp
}

var inARN = regexp.MustCompile(`^arn:aws[a-z-]*:([a-z]+):([a-z0-9-]+):[0-9]{12}:(.+)$`)

// arn checks an ARN that may be empty, or open, of a resource in the Region home,
// which is "" if it is not known yet.
func (e *errorsIn) arn(field, arn string, of resource, home string) {
	if arn == "" || open(arn) {
		return
	}
	switch m := inARN.FindStringSubmatch(arn); {
	case m == nil || m[1] != of.service || !of.name.MatchString(m[3]):
		e.add(wrong(field, "is %q, want %s", arn, of.want))
	case home != "" && m[2] != home:
		e.add(wrong(field, "is %q, in %s: want one in %s", arn, m[2], home))
	}
}

// between checks a number of which zero stands for the default.
func (e *errorsIn) between(field string, n, least, most int, unit string) {
	if n != 0 && (n < least || n > most) {
		e.add(wrong(field, "is %d %s, want %d to %d", n, unit, least, most))
	}
}

func (e *errorsIn) retention(days int) {
	if days != 0 && !slices.Contains(retentionDays, days) {
		e.add(wrong("LogRetentionDays", "is %d, want one of %v", days, retentionDays))
	}
}

// distinct checks the elements of a list.
func (e *errorsIn) distinct(field string, list []string) {
	for i, one := range list {
		switch {
		case one == "" || strings.TrimSpace(one) != one:
			e.add(wrong(field, "has the element %q, which is empty or has spaces around it", one))
		case slices.Contains(list[:i], one):
			e.add(wrong(field, "%q is named twice", one))
		}
	}
}
