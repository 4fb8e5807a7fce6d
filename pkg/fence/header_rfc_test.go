package fence_test

import (
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A library that knows RFC 9651, and nothing of Pawl, reads every header as it was
// meant, and writes the same.
func TestALibraryOfRFC9651ReadsAndWritesTheSameHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lock := "payments/" + rapid.StringN(1, 100, 500).Draw(t, "lock")
		token := fence.Token(rapid.Int64Range(1, int64(fence.Max)).Draw(t, "token"))
		written, err := fence.FormatHeader(lock, token)
		if err != nil {
			t.Skip("not a name")
		}
		read, err := httpsfv.UnmarshalItem([]string{written})
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		name, _ := read.Params.Get("lock")
		if read.Value != int64(token) || name != httpsfv.DisplayString(lock) || len(read.Params.Names()) != 1 {
			t.Errorf("%s: it read %v of %v", written, read.Value, name)
		}

		theirs := httpsfv.NewItem(int64(token))
		theirs.Params.Add("lock", httpsfv.DisplayString(lock))
		value, err := httpsfv.Marshal(theirs)
		if err != nil || value != written {
			t.Errorf("it wrote %s, error %v, want %s", value, err, written)
		}
	})
}

// What is read here is a header by RFC 9651 too, whatever is sent.
func TestOnlyHeadersOfRFC9651AreRead(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"a", " ", ";", `\`, "%25", "%22", "%c3%a9", "\u2028", `"`, "%", "%C3%A9", "%c3", "%0a", "\x00", "\x7f", "\xff",
	})
	tokens := rapid.SampledFrom([]string{"17", "999999999999999", "-1", "017", "1.0"})
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(pieces, 0, 5).Draw(t, "name"), "")
		value := tokens.Draw(t, "token") + `;lock=%"a/` + name + `"`
		lock, token, err := fence.ParseHeader(value)
		if err != nil {
			return
		}
		accepted++
		read, err := httpsfv.UnmarshalItem([]string{value})
		if err != nil {
			t.Fatalf("%q was read as token %d of %q: %v", value, token, lock, err)
		}
		if theirs, _ := read.Params.Get("lock"); theirs != httpsfv.DisplayString(lock) || read.Value != int64(token) {
			t.Errorf("%q was read as token %d of %q, and by the library as %v of %v", value, token, lock, read.Value, theirs)
		}
	})
	if accepted == 0 {
		t.Error("nothing was read")
	}
}
