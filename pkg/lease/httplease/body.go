package httplease

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// maxBody is many times what the largest valid request needs.
const maxBody = 16 << 10

// strict reads JSON as RFC 8259 and I-JSON say, where encoding/json is lenient:
// member names match by case and once, and text is valid Unicode. A lock whose
// name has been repaired on the way in is another lock.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(wholeNumbers, json.UnmarshalFromFunc(refuseNull))),
)

var errNull = errors.New("is null")

// refuseNull leaves everything but null to the default. A null is no value, and
// is not the same as a member left out, nor as an empty body.
func refuseNull(d *jsontext.Decoder, _ any) error {
	if d.PeekKind() == 'n' {
		return errNull
	}
	return errors.ErrUnsupported
}

// read reads the body of a request into v, a pointer to one of the bodies.
func (c *call) read(v any) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return errTooLarge
	}
	if err != nil {
		return &lease.InvalidError{Reason: "the body could not be read"}
	}
	if err := json.Unmarshal(body, v, strict); err != nil {
		return invalidBody(err)
	}
	return nil
}

// invalidBody says what is wrong with a body, and where.
func invalidBody(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		reason := "want " + kind(semantic)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			reason = "is not known"
		case errors.Is(err, errNull):
			reason = "is null"
		}
		return &lease.InvalidError{Field: member(semantic.JSONPointer), Reason: reason}
	case errors.As(err, &syntactic):
		reason := "the body is not JSON: " + syntactic.Err.Error()
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			reason = "is given twice"
		case strings.HasPrefix(syntactic.Err.Error(), "invalid surrogate pair"):
			reason = "is not valid Unicode" // the error quotes what follows: maybe the lease id
		}
		return &lease.InvalidError{Field: member(syntactic.JSONPointer), Reason: reason}
	}
	return &lease.InvalidError{Reason: "the body is not JSON"}
}

// member is the first member of the body on the way to where an error is.
func member(p jsontext.Pointer) string {
	for token := range p.Tokens() {
		return token
	}
	return ""
}

func kind(e *json.SemanticError) string {
	switch e.GoType.Kind().String() {
	case "string", "ptr":
		return "a string"
	case "int64":
		return "a whole number"
	}
	return "a JSON object"
}

// answer writes the body of a success.
func (c *call) answer(status int, outcome string, body any) error {
	c.write(status, "application/json", outcome, body)
	return nil
}

func (c *call) write(status int, contentType, outcome string, body any) {
	c.status, c.outcome = status, outcome
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(status)
	// The field of a problem is what the caller sent, be it UTF-8 or not. So this
	// always encodes; the status is sent, and a broken pipe is the client's to
	// notice.
	_ = json.MarshalWrite(c.w, body, jsontext.AllowInvalidUTF8(true))
}
