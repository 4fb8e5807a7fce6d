package gateway

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	amzDate    = "20060102T150405Z"
	clockLimit = 5 * time.Minute // a signature is good for this long, either way
)

// A Key is an access key and whose it is.
type Key struct {
	ID, Secret string

	// SessionToken makes it a temporary key, which must come with the token.
	SessionToken string

	// UserARN names the caller, as in "arn:aws:iam::123456789012:user/alice" or
	// "arn:aws:sts::123456789012:assumed-role/app/session".
	UserARN string

	// UserID is the unique id, which for a role includes the session. Empty
	// means one made from ID.
	UserID string
}

// IAM returns an authorizer that accepts requests signed with Signature Version
// 4 in the Authorization header for execute-api in a region. It answers 403 to
// all others, presigned URLs among them, though AWS accepts those.
//
// It is as strict as the specification: the host and every x-amz-* header must
// be signed, and x-amz-content-sha256, if present, must be the body's (so not
// UNSIGNED-PAYLOAD). The path is encoded twice, as for every service but S3,
// and not normalized; a signer that normalizes fails on "//" and "/./".
func IAM(region string, keys ...Key) Authorizer {
	v := verifier{region, "execute-api", map[string]Key{}, time.Now}
	for _, k := range keys {
		v.keys[k.ID] = k
	}
	return func(r *http.Request, body []byte) (map[string]any, error) {
		k, err := v.verify(r, body)
		if err != nil {
			return nil, refuse(http.StatusForbidden, "signature: "+err.Error())
		}
		return k.vouch(), nil
	}
}

// Anyone is an authorizer for development: it asks for no signature and vouches
// for every caller as one user. There is nothing like it in AWS.
func Anyone(*http.Request, []byte) (map[string]any, error) {
	return Key{ID: "AKIALOCAL", UserARN: "arn:aws:iam::" + account + ":user/anyone"}.vouch(), nil
}

// vouch returns what the event says of the owner of k.
func (k Key) vouch() map[string]any {
	userID := cmp.Or(k.UserID, "AIDA"+k.ID)
	owner := account
	if arn := strings.Split(k.UserARN, ":"); len(arn) > 4 {
		owner = arn[4]
	}
	return map[string]any{"iam": map[string]any{
		"accessKey":       k.ID,
		"accountId":       owner,
		"callerId":        userID,
		"cognitoIdentity": nil,
		"principalOrgId":  nil,
		"userArn":         k.UserARN,
		"userId":          userID,
	}}
}

// verifier checks signatures for one service in one region.
type verifier struct {
	region, service string
	keys            map[string]Key
	now             func() time.Time
}

func (v *verifier) verify(r *http.Request, body []byte) (Key, error) {
	sig, err := parseAuthorization(r.Header.Values("Authorization"))
	if err != nil {
		return Key{}, err
	}
	key, ok := v.keys[sig.keyID]
	if !ok {
		return Key{}, errors.New("unknown key " + strconv.Quote(sig.keyID))
	}
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse(amzDate, stamp)
	if err != nil {
		return Key{}, errors.New("no valid x-amz-date")
	}
	if want := stamp[:8] + "/" + v.region + "/" + v.service + "/aws4_request"; sig.scope != want {
		return Key{}, fmt.Errorf("scope %q, want %q", sig.scope, want)
	}
	if age := v.now().Sub(at); age.Abs() > clockLimit {
		return Key{}, fmt.Errorf("%v old", age)
	}
	// Also when neither has one: a permanent key with a token is no such key.
	if !hmac.Equal([]byte(r.Header.Get("X-Amz-Security-Token")), []byte(key.SessionToken)) {
		return Key{}, errors.New("wrong session token")
	}
	payload := hashHex(string(body))
	if sum := r.Header.Get("X-Amz-Content-Sha256"); sum != "" && sum != payload {
		return Key{}, errors.New("x-amz-content-sha256 is not the body's")
	}
	canonical, err := canonicalRequest(r, sig.headers, payload)
	if err != nil {
		return Key{}, err
	}
	signed := strings.Join([]string{algorithm, stamp, sig.scope, hashHex(canonical)}, "\n")
	want := mac(signingKey(key.Secret, stamp[:8], v.region, v.service), signed)
	if !hmac.Equal(sig.mac, want) {
		return Key{}, fmt.Errorf("does not match; canonical request %q", canonical)
	}
	return key, nil
}

// signature is what the Authorization header says.
type signature struct {
	keyID, scope string
	headers      []string
	mac          []byte
}

func parseAuthorization(values []string) (s signature, err error) {
	if len(values) != 1 {
		return s, fmt.Errorf("%d Authorization headers", len(values))
	}
	rest, ok := strings.CutPrefix(values[0], algorithm+" ")
	fields := map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	s.keyID, s.scope, _ = strings.Cut(fields["Credential"], "/")
	s.headers = strings.Split(fields["SignedHeaders"], ";")
	s.mac, err = hex.DecodeString(fields["Signature"])
	if !ok || err != nil || len(fields) != 3 {
		return s, errors.New("no valid " + algorithm + " Authorization header")
	}
	return s, nil
}

// canonicalRequest is the request as its signer saw it.
func canonicalRequest(r *http.Request, signed []string, payload string) (string, error) {
	query, err := canonicalQuery(r.URL.RawQuery)
	if err != nil {
		return "", err
	}
	var c strings.Builder
	fmt.Fprintf(&c, "%s\n%s\n%s\n", r.Method, uriEncode(r.URL.EscapedPath(), "/"), query)
	if !slices.IsSorted(signed) || !slices.Contains(signed, "host") {
		return "", fmt.Errorf("signed headers %q are not sorted or lack the host", signed)
	}
	for _, name := range signed {
		values := r.Header.Values(name)
		switch name {
		case "host": // net/http keeps these two elsewhere, the second one sometimes
			values = []string{r.Host}
		case "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		}
		if len(values) == 0 {
			return "", fmt.Errorf("signed header %q is not there", name)
		}
		squeezed := make([]string, len(values))
		for i, value := range values {
			squeezed[i] = squeeze(value)
		}
		fmt.Fprintf(&c, "%s:%s\n", name, strings.Join(squeezed, ","))
	}
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") && !slices.Contains(signed, lower) {
			return "", fmt.Errorf("header %q is not signed", lower)
		}
	}
	fmt.Fprintf(&c, "\n%s\n%s", strings.Join(signed, ";"), payload)
	return c.String(), nil
}

// squeeze makes every run of spaces one, and none at the ends.
func squeeze(value string) string {
	value = strings.TrimSpace(value)
	for strings.Contains(value, "  ") {
		value = strings.ReplaceAll(value, "  ", " ")
	}
	return value
}

// canonicalQuery decodes the parameters, encodes them in the one true way, and
// sorts them by encoded name, then value. A "+" is a space, as in the event.
func canonicalQuery(raw string) (string, error) {
	type param struct{ name, value string }
	var params []param
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err := errors.Join(err, err2); err != nil {
			return "", err
		}
		params = append(params, param{uriEncode(name, ""), uriEncode(value, "")})
	}
	slices.SortFunc(params, func(a, b param) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	var q strings.Builder
	for i, p := range params {
		if i > 0 {
			q.WriteByte('&')
		}
		q.WriteString(p.name + "=" + p.value)
	}
	return q.String(), nil
}

// uriEncode encodes all but the unreserved characters of RFC 3986 and keep.
func uriEncode(s, keep string) string {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
	var e strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(unreserved, c) >= 0 || strings.IndexByte(keep, c) >= 0 {
			e.WriteByte(c)
		} else {
			fmt.Fprintf(&e, "%%%02X", c)
		}
	}
	return e.String()
}

// signingKey is the key that AWS derives for a day, a region and a service.
func signingKey(secret, date, region, service string) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range []string{date, region, service, "aws4_request"} {
		key = mac(key, part)
	}
	return key
}

func mac(key []byte, data string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(data))
	return h.Sum(nil)
}

func hashHex(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}
