// Package fence carries fencing tokens from the holder of a lock to the storage
// that checks them.
//
// Every grant of a lock has a token larger than that of every earlier grant of
// the same lock. Storage that remembers the highest token it has seen, and
// refuses a lower one, can therefore never be moved back by a holder that was
// paused past its lease.
//
// A token proves order, not permission, and orders only the grants of one lock:
// tokens of different locks look comparable and are not. It protects nothing
// until some guard beside the data checks it.
package fence

import (
	"fmt"
	"strconv"
)

// A Token is the fencing token of one grant of a lock, from 1 to [Max]. Zero
// means that there is none: nothing was granted, and no guard accepts it.
type Token int64

// Max is the largest token: what an RFC 9651 integer can hold. It is below
// 2^53, so every language that reads JSON numbers as doubles has it exactly.
const Max Token = 999_999_999_999_999

// Valid reports whether a grant can have carried t.
func (t Token) Valid() bool { return 1 <= t && t <= Max }

// String returns t in decimal digits.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Parse reads what [Token.String] prints of a valid token, and nothing else: no
// sign, no leading zero, no space.
func Parse(s string) (Token, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if t := Token(n); err == nil && t.Valid() && t.String() == s {
		return t, nil
	}
	return 0, fmt.Errorf("fence: %q is not a token: want an integer from 1 to %d", s, Max)
}
