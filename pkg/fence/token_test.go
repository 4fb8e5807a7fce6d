package fence

import (
	"math"
	"strings"
	"testing"
)

func TestParseReadsWhatStringPrintsOfAValidToken(t *testing.T) {
	for _, token := range []Token{1, 9, 10, 1_785_000_000_000, Max - 1, Max} {
		if got, err := Parse(token.String()); got != token || err != nil {
			t.Errorf("%d: got %d, error %v", token, got, err)
		}
	}
}

func TestParseRefusesEverythingElse(t *testing.T) {
	for name, s := range map[string]string{
		"nothing":                        "",
		"zero, which means no token":     "0",
		"a negative number":              "-1",
		"one above the largest":          "1000000000000000",
		"2^53":                           "9007199254740992",
		"the largest int64":              "9223372036854775807",
		"what wraps an int64 to 1":       "18446744073709551617",
		"a sign":                         "+1",
		"a leading zero":                 "01",
		"a space before":                 " 1",
		"a space after":                  "1 ",
		"a newline":                      "1\n",
		"a NUL":                          "1\x00",
		"a fraction":                     "1.0",
		"an exponent":                    "1e3",
		"hexadecimal":                    "0x1",
		"digits grouped as Go does":      "1_000",
		"digits grouped as people do":    "1,000",
		"digits of another script":       "١",
		"more digits than any number":    strings.Repeat("9", 1000),
		"two tokens":                     "1 2",
		"quotes":                         `"1"`,
		"the word for the absence of it": "null",
	} {
		if got, err := Parse(s); got != 0 || err == nil {
			t.Errorf("%s: %q was read as %d, error %v", name, s, got, err)
		}
	}
}

func TestOnlyAGrantHasAValidToken(t *testing.T) {
	for token, want := range map[Token]bool{
		math.MinInt64: false, -1: false, 0: false, 1: true, Max: true, Max + 1: false, math.MaxInt64: false,
	} {
		if got := token.Valid(); got != want {
			t.Errorf("%d: got %t, want %t", token, got, want)
		}
	}
}

func TestTheLargestTokenSurvivesADouble(t *testing.T) {
	for _, token := range []Token{Max, Max - 1} {
		if got := Token(float64(token)); got != token {
			t.Errorf("%d became %d", token, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "999999999999999", "1000000000000000", "0", "-1", "+1", "01", " 1", "1.0", "1e3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := Parse(s)
		switch {
		case err != nil && token != 0:
			t.Errorf("%q: got %d with error %v", s, token, err)
		case err == nil && (!token.Valid() || token.String() != s):
			t.Errorf("%q was read as %v", s, token)
		}
	})
}

func FuzzString(f *testing.F) {
	f.Add(int64(1))
	f.Add(int64(Max))
	f.Add(int64(Max) + 1)
	f.Fuzz(func(t *testing.T, n int64) {
		token, err := Parse(Token(n).String())
		if valid := Token(n).Valid(); valid != (err == nil) || valid && token != Token(n) {
			t.Errorf("%d: got %d, error %v", n, token, err)
		}
	})
}
