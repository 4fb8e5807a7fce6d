package fence

import (
	"fmt"
	"strings"
)

// Header is the name of the field that carries a token over HTTP.
const Header = "Fencing-Token"

// FormatHeader returns the value of [Header]: a structured field as in RFC 9651,
// the token an Integer and the lock a parameter of it, a Display String.
//
//	Fencing-Token: 1795999458837;lock=%"payments/orders/42"
//
// It fails with [ErrInvalid] for what no lock can be called or no token be.
func FormatHeader(lock string, t Token) (string, error) {
	if err := (Holding{Lock: lock, Token: t}).Check(); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(t.String())
	b.WriteString(lockParameter)
	for _, c := range []byte(lock) {
		if plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	b.WriteByte('"')
	return b.String(), nil
}

const (
	lockParameter = `;lock=%"`
	hex           = "0123456789abcdef"
)

// plain reports whether a Display String has c as itself.
func plain(c byte) bool { return ' ' <= c && c <= '~' && c != '%' && c != '"' }

// ParseHeader reads what [FormatHeader] returns, and nothing else: RFC 9651 has
// one way to write a value, so a value that is written in another way was not
// written by a library. It fails with [ErrInvalid].
func ParseHeader(value string) (lock string, t Token, err error) {
	digits, rest, found := strings.Cut(value, lockParameter)
	text, closed := strings.CutSuffix(rest, `"`)
	if !found || !closed {
		return "", 0, fmt.Errorf(`%w: %s is %.100q, want 17;lock=%%"namespace/lock"`, ErrInvalid, Header, value)
	}
	if t, err = Parse(digits); err != nil {
		return "", 0, fmt.Errorf("%w: %s: %w", ErrInvalid, Header, err)
	}
	lock, ok := unescape(text)
	// Only the canonical form comes back as it was.
	if again, err := FormatHeader(lock, t); !ok || err != nil || again != value {
		return "", 0, fmt.Errorf("%w: %s: the lock %.100q is no Display String of a name", ErrInvalid, Header, text)
	}
	return lock, t, nil
}

func unescape(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		hi, lo := strings.IndexByte(hex, s[i+1]), strings.IndexByte(hex, s[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), true
}
