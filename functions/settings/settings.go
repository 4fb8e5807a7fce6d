// Package settings is what a deployment tells its functions through their
// environment: the stacks write it, the functions read it, and the names of the
// variables are nowhere else.
//
// It does not have what Lambda itself sets: the Region and the credentials.
package settings

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease/protocol"
)

// An Auth is the kind of authorizer that the gateway asks who calls. The zero
// Auth is none of them, and lets nobody in.
type Auth string

const (
	IAM Auth = "iam" // signatures; the gateway has checked namespace and action
	JWT Auth = "jwt" // tokens; the function checks their scopes
)

// An API is how functions/api works.
type API struct {
	// Table is the table with the locks. Required.
	Table string

	// Auth is the kind of authorizer of the API's routes. Required. A call for
	// which no authorizer of this kind vouches is refused.
	Auth Auth

	// ScopeClaim is one more claim of a token, beside scope and scp, that says
	// what its bearer may do. Empty means none. Only with [JWT].
	ScopeClaim string

	// Metrics is where CloudWatch keeps what the function counts: a namespace of
	// CloudWatch's, not of locks. Required: two deployments that share one ring
	// each other's alarms.
	Metrics string

	// Rules are the limits. Their zero values are left out of the environment.
	Rules protocol.Rules
}

// The variables of the functions.
const (
	table         = "TABLE"
	auth          = "AUTH"
	scopeClaim    = "SCOPE_CLAIM"
	metrics       = "METRICS"
	maxTTL        = "MAX_TTL_MS"
	maxLockDelay  = "MAX_LOCK_DELAY_MS"
	skew          = "SKEW_MS"
	restoredAt    = "RESTORED_AT_MS"
	quarantineEnd = "QUARANTINE_END_MS"
	sweepRate     = "SWEEP_RATE"
)

// What whoever compares two deployments looks at: the variables with the table,
// and with the time at which it was restored.
const (
	Table      = table
	RestoredAt = restoredAt
)

// Limits are the variables of [protocol.Rules], by which a server on one machine
// passes on its own environment.
var Limits = []string{maxTTL, maxLockDelay, skew, restoredAt, quarantineEnd}

var (
	claimName = regexp.MustCompile(`^[!-~]{1,256}$`)

	// identity are the claims that say who somebody is, or when: whoever can choose
	// a name there would choose rights.
	identity = []string{
		"iss", "sub", "aud", "client_id", "azp", "appid", "exp", "nbf", "iat", "jti",
		"name", "email", "preferred_username", "nonce",
	}
)

// GrantingClaim reports whether a claim of this name can be a ScopeClaim.
func GrantingClaim(name string) bool {
	return claimName.MatchString(name) && !slices.Contains(identity, name)
}

// Environ returns the environment that [ReadAPI] reads.
func (a API) Environ() map[string]string {
	env := map[string]string{table: a.Table, auth: string(a.Auth), metrics: a.Metrics}
	if a.ScopeClaim != "" {
		env[scopeClaim] = a.ScopeClaim
	}
	set := func(name string, ms int64) {
		if ms != 0 {
			env[name] = strconv.FormatInt(ms, 10)
		}
	}
	set(maxTTL, a.Rules.MaxTTL.Milliseconds())
	set(maxLockDelay, a.Rules.MaxLockDelay.Milliseconds())
	set(skew, a.Rules.Skew.Milliseconds())
	if !a.Rules.RestoredAt.IsZero() {
		set(restoredAt, a.Rules.RestoredAt.UnixMilli())
	}
	if !a.Rules.QuarantineEnd.IsZero() {
		set(quarantineEnd, a.Rules.QuarantineEnd.UnixMilli())
	}
	return env
}

// ReadAPI reads the settings of functions/api on a host whose clock reads now. It
// reports every variable that is missing or wrong.
func ReadAPI(now time.Time, getenv func(string) string) (API, error) {
	r := reader{getenv: getenv}
	a := API{
		Table:      r.required(table),
		Auth:       Auth(r.required(auth)),
		ScopeClaim: getenv(scopeClaim),
		Metrics:    r.required(metrics),
		Rules: protocol.Rules{
			MaxTTL:        r.duration(maxTTL),
			MaxLockDelay:  r.duration(maxLockDelay),
			Skew:          r.duration(skew),
			RestoredAt:    r.instant(restoredAt),
			QuarantineEnd: r.instant(quarantineEnd),
		},
	}
	if a.Auth != "" && !slices.Contains([]Auth{IAM, JWT}, a.Auth) {
		r.wrong(auth, "want iam or jwt")
	}
	switch {
	case a.ScopeClaim == "":
	case a.Auth != JWT:
		r.wrong(scopeClaim, "want none: only tokens have claims")
	case !GrantingClaim(a.ScopeClaim):
		r.wrong(scopeClaim, "want a claim that says what its bearer may do, not who it is")
	}
	if err := a.Rules.Validate(now); err != nil {
		r.errs = append(r.errs, err)
	}
	return a, errors.Join(r.errs...)
}

// A Sweeper is how functions/sweeper works.
type Sweeper struct {
	// Table is the table with the locks. Required.
	Table string

	// Metrics is as that of an [API]. Required.
	Metrics string

	// Rate is how many requests are sent a second. Zero means what package
	// dynamolease does.
	Rate float64
}

// Environ returns the environment that [ReadSweeper] reads.
func (s Sweeper) Environ() map[string]string {
	env := map[string]string{table: s.Table, metrics: s.Metrics}
	if s.Rate != 0 {
		env[sweepRate] = strconv.FormatFloat(s.Rate, 'f', -1, 64)
	}
	return env
}

// ReadSweeper reads the settings of functions/sweeper, as [ReadAPI] does.
func ReadSweeper(getenv func(string) string) (Sweeper, error) {
	r := reader{getenv: getenv}
	s := Sweeper{Table: r.required(table), Metrics: r.required(metrics)}
	if v := getenv(sweepRate); v != "" {
		var err error
		if s.Rate, err = strconv.ParseFloat(v, 64); err != nil || !(s.Rate > 0) { // NaN is not
			r.wrong(sweepRate, "want requests a second, above 0")
		}
	}
	return s, errors.Join(r.errs...)
}

// A reader reads variables and keeps what is wrong with them.
type reader struct {
	getenv func(string) string
	errs   []error
}

func (r *reader) wrong(name, want string) {
	r.errs = append(r.errs, fmt.Errorf("%s is %q, %s", name, r.getenv(name), want))
}

func (r *reader) required(name string) string {
	v := r.getenv(name)
	if v == "" {
		r.errs = append(r.errs, fmt.Errorf("%s is not set", name))
	}
	return v
}

// most is the end of the year 2100, in ms: far below what overflows.
const most = 4_133_980_800_000

func (r *reader) millis(name string) int64 {
	v := r.getenv(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 || n > most {
		r.wrong(name, "want milliseconds, above 0")
		return 0
	}
	return n
}

func (r *reader) duration(name string) time.Duration {
	return time.Duration(r.millis(name)) * time.Millisecond
}

// instant returns the zero time for a variable that is not set.
func (r *reader) instant(name string) (t time.Time) {
	if n := r.millis(name); n != 0 {
		t = time.UnixMilli(n)
	}
	return t
}
