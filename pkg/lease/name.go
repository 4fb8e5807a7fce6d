package lease

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Name is the full name of a lock. Names are compared byte by byte: no case
// folding, no Unicode normalization.
type Name struct {
	// Namespace is the tenant, the unit of permission: 1 to 63 characters of
	// a-z, 0-9 and hyphen, with no hyphen at either end.
	Namespace string

	// Lock is what is locked: 1 to 512 bytes of UTF-8 without control
	// characters.
	Lock string
}

// ParseName splits a full name at its first slash. A namespace has none, so
// the split is the only one, and a lock may have any number.
func ParseName(full string) (Name, error) {
	namespace, lock, found := strings.Cut(full, "/")
	if !found {
		return Name{}, invalid("lock", "want namespace/lock")
	}
	n := Name{Namespace: namespace, Lock: lock}
	return n, n.Validate()
}

// String returns "namespace/lock".
func (n Name) String() string { return n.Namespace + "/" + n.Lock }

// Validate returns an [InvalidError] unless n can name a lock.
func (n Name) Validate() error {
	if !validNamespace(n.Namespace) {
		return invalid("namespace", "want 1 to 63 characters of a-z, 0-9 and '-', and no '-' at either end")
	}
	if n.Lock == "" {
		return invalid("lock", "is required")
	}
	return validText("lock", n.Lock, 512, "")
}

func validNamespace(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// validText refuses what is longer than limit bytes, not UTF-8, or has a
// control character that is not in allowed: a newline in a name is a forged
// log line somewhere, and a NUL ends strings early in some stores.
func validText(field, s string, limit int, allowed string) error {
	if len(s) > limit {
		return invalid(field, "is longer than %d bytes", limit)
	}
	if !utf8.ValidString(s) {
		return invalid(field, "is not valid UTF-8")
	}
	for _, r := range s {
		if unicode.IsControl(r) && !strings.ContainsRune(allowed, r) {
			return invalid(field, "contains the control character %U", r)
		}
	}
	return nil
}
