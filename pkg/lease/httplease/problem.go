package httplease

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

// Errors of HTTP itself. The client never makes such a request.
var (
	errNotFound = errors.New("there is nothing at this path")
	errMethod   = errors.New("this path takes another method")
	errTooLarge = errors.New("the body is larger than 16 KiB")
)

// problems is the whole mapping between errors and the wire. The handler reads
// it left to right, and takes the first that matches; the client reads it right
// to left. What nothing matches is the first: an error that says nothing of the
// outcome leaves it open, whatever else it says.
var problems = []struct {
	err    error
	code   string
	status int
}{
	{lease.ErrOutcomeUnknown, OutcomeUnknown, http.StatusServiceUnavailable},
	{lease.ErrHeld, OutcomeHeld, http.StatusConflict},
	{lease.ErrRequestSpent, OutcomeRequestSpent, http.StatusConflict},
	{lease.ErrRequestConflict, OutcomeRequestConflict, http.StatusConflict},
	{lease.ErrTokenChanged, OutcomeTokenChanged, http.StatusConflict},
	{lease.ErrExpired, OutcomeExpired, http.StatusGone}, // before ErrLost, which it matches
	{lease.ErrLost, OutcomeLost, http.StatusGone},
	{lease.ErrInvalid, OutcomeInvalid, http.StatusBadRequest},
	{lease.ErrForbidden, OutcomeForbidden, http.StatusForbidden},
	{errNotFound, OutcomeNotFound, http.StatusNotFound},
	{errMethod, OutcomeMethodNotAllowed, http.StatusMethodNotAllowed},
	{errTooLarge, OutcomeTooLarge, http.StatusRequestEntityTooLarge},
	{lease.ErrThrottled, OutcomeThrottled, http.StatusTooManyRequests},
	{lease.ErrTooManyWithdrawn, OutcomeTooManyWithdrawn, http.StatusTooManyRequests},
	{lease.ErrMisconfigured, OutcomeMisconfigured, http.StatusInternalServerError},
	{lease.ErrUnavailable, OutcomeUnavailable, http.StatusServiceUnavailable},
	{lease.ErrClockSkew, OutcomeClockSkew, http.StatusServiceUnavailable},
	{lease.ErrQuarantine, OutcomeQuarantine, http.StatusServiceUnavailable},
}

// A problem is an error on the wire: RFC 9457, problem details, with members of
// our own.
type problem struct {
	Type       string      `json:"type"`
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Detail     string      `json:"detail"`
	Code       string      `json:"code"`
	Field      string      `json:"field,omitzero"`
	Holder     *string     `json:"holder,omitzero"`
	Token      fence.Token `json:"token,omitzero"`
	Remaining  *millis     `json:"remaining_ms,omitzero"`
	RetryAfter *millis     `json:"retry_after_ms,omitzero"`
}

// problemOf describes err. Of a failure it says what it means and not how it
// came about: that is for the log.
func problemOf(err error) problem {
	known := problems[0]
	for _, row := range problems {
		if errors.Is(err, row.err) {
			known = row
			break
		}
	}
	p := problem{
		Type:   "urn:pawl:problem:" + known.code,
		Title:  http.StatusText(known.status),
		Status: known.status,
		Detail: known.err.Error(),
		Code:   known.code,
	}
	after := time.Duration(-1)
	var (
		held    *lease.HeldError
		changed *lease.TokenChangedError
		invalid *lease.InvalidError
		denied  *lease.ForbiddenError
		retry   *lease.RetryError
	)
	switch {
	case errors.As(err, &held):
		remaining := millisOf(held.Remaining)
		p.Detail, p.Holder, p.Token, p.Remaining = held.Error(), &held.Holder, held.Token, &remaining
		after = held.RetryAfter()
	case errors.As(err, &changed):
		p.Detail, p.Token = changed.Error(), changed.Token
	case errors.As(err, &invalid):
		p.Detail, p.Field = invalid.Error(), invalid.Field
	case errors.As(err, &denied):
		p.Detail = denied.Error()
	case errors.As(err, &retry):
		after = retry.After
	}
	if after >= 0 {
		m := millisOf(after)
		p.RetryAfter = &m
	}
	return p
}

// error is the inverse of problemOf. A code that this version does not know
// falls back to what its status says.
func (p problem) error(byStatus func(int) error) error {
	var err error
	for _, known := range problems {
		if known.code == p.Code {
			err = known.err
		}
	}
	switch {
	case err == nil:
		err = byStatus(p.Status)
	case err == lease.ErrHeld:
		return &lease.HeldError{Holder: *cmp.Or(p.Holder, new(string)), Token: p.Token, Remaining: cmp.Or(p.Remaining, new(millis)).duration()}
	case err == lease.ErrTokenChanged:
		return &lease.TokenChangedError{Token: p.Token}
	case err == lease.ErrInvalid:
		return &lease.InvalidError{Field: p.Field, Reason: trimField(p.Field, p.Detail)}
	case err == lease.ErrForbidden:
		return &lease.ForbiddenError{Reason: strings.TrimPrefix(p.Detail, err.Error()+": ")}
	case err == errNotFound || err == errMethod:
		err = errors.Join(lease.ErrMisconfigured, err)
	case err == errTooLarge:
		err = errors.Join(lease.ErrInvalid, err)
	}
	if p.RetryAfter != nil {
		return &lease.RetryError{Err: err, After: p.RetryAfter.duration()}
	}
	return err
}

// trimField undoes what [lease.InvalidError] puts in front of its reason.
func trimField(field, detail string) string {
	if field == "" {
		return detail
	}
	return strings.TrimPrefix(detail, field+": ")
}

// refuse answers with the problem that err is.
func (c *call) refuse(err error) {
	p := problemOf(err)
	if p.RetryAfter != nil {
		seconds := (*p.RetryAfter + 999) / 1000
		c.w.Header().Set("Retry-After", strconv.FormatInt(int64(max(seconds, 1)), 10))
	}
	if p.Token != 0 {
		c.token = p.Token
	}
	c.write(p.Status, "application/problem+json", p.Code, p)
}
