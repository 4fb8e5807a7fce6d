package httplease

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Caller is what a gateway found out about a request. The zero Caller is
// nobody, and may do nothing.
type Caller struct {
	// Principal is who calls; see [lease.Call]. Nobody may do nothing, whatever
	// the other fields say.
	Principal string

	// Name is what people call the principal: the name of the role or user, the
	// subject. It is the holder of a lease whose acquire names none.
	Name string

	// Received is when the gateway received the request; see [lease.Call].
	Received time.Time

	// Unrestricted says that the caller may do what it asks for: the gateway has
	// checked the path, as IAM does.
	Unrestricted bool

	// Scopes are what any other caller may do, each as "{namespace}/{action}":
	// "payments/acquire".
	Scopes []string
}

// Anyone lets every caller do everything, under one principal. It is for a
// [Handler] that only its own machine can reach.
func Anyone(*http.Request) Caller {
	return Caller{Principal: "anyone", Name: "anyone", Unrestricted: true}
}

// maxHolder is what a holder may have, in bytes.
const maxHolder = 256

// holder is the name that a lease of the caller has when its acquire has none:
// always the same for one caller, so that a repeat is one.
func (c Caller) holder() string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(c.Name, ""))
	if len(name) > maxHolder {
		name = strings.ToValidUTF8(name[:maxHolder], "")
	}
	return name
}

// permitted fails unless the caller may make this call.
func (c *call) permitted() error {
	scope := c.name.Namespace + "/" + c.action
	switch {
	case c.action == "": // for everyone
		return nil
	case c.caller.Principal == "":
		return &lease.ForbiddenError{Reason: "the gateway vouches for no caller"}
	case c.caller.Unrestricted || slices.Contains(c.caller.Scopes, scope):
		return nil
	}
	return &lease.ForbiddenError{Reason: "the caller needs the scope " + strconv.Quote(scope)}
}
