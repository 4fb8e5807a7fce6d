package httplease

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// wholeNumbers reads the integers of a request as JSON Schema means them: 30000
// is 3e4 and 30000.0 too. Some languages write such numbers without being asked.
var wholeNumbers = json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readWhole[millis]),
	json.UnmarshalFromFunc(readWhole[fence.Token]),
)

var errNotWhole = errors.New("is not a whole number of 64 bits")

// readWhole leaves to the default what is no number at all.
func readWhole[T ~int64](d *jsontext.Decoder, v *T) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	n, ok := whole(string(text))
	if !ok {
		return errNotWhole
	}
	*v = T(n)
	return nil
}

// whole returns the value of a JSON number if it is an integer of 64 bits,
// exactly: through a float64, 1.0000000000000000001 would be one.
func whole(number string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n, true
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(before+after, "0")
	if strings.Trim(digits, "-0") == "" {
		return 0, true // whatever the exponent
	}
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return 0, false // more digits than an int has
		}
	}
	zeros := len(before) + shift - len(digits)
	if zeros < 0 || zeros > 19 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}
