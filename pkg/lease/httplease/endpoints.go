package httplease

import (
	_ "embed"
	"net/http"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
)

func (h *Handler) acquire(c *call) error {
	var b acquireBody
	if err := c.read(&b); err != nil {
		return err
	}
	if b.Holder == "" {
		b.Holder = c.caller.holder()
	}
	c.name.Lock, c.holder = b.Lock, b.Holder
	q, err := b.request(c.name)
	if err != nil {
		return err
	}
	l, err := h.Service.Acquire(c.ctx, q)
	if err != nil {
		return err
	}
	c.token = l.Token
	if l.Repeated {
		return c.answer(http.StatusOK, OutcomeRepeated, leaseOf(l))
	}
	if l.Abandoned != nil {
		return c.answer(http.StatusCreated, OutcomeGrantedAbandoned, leaseOf(l))
	}
	return c.answer(http.StatusCreated, OutcomeGranted, leaseOf(l))
}

func (h *Handler) renew(c *call) error {
	var b renewBody
	if err := c.read(&b); err != nil {
		return err
	}
	c.name.Lock, c.token = b.Lock, b.Token
	l, err := h.Service.Renew(c.ctx, lease.RenewRequest{Name: c.name, LeaseID: b.LeaseID, Token: b.Token, TTL: b.TTL.duration()})
	if err != nil {
		return err
	}
	c.holder = l.Holder
	return c.answer(http.StatusOK, OutcomeRenewed, leaseOf(l))
}

func (h *Handler) release(c *call) error {
	var b releaseBody
	if err := c.read(&b); err != nil {
		return err
	}
	q, err := b.request(c.name)
	c.name.Lock, c.token = b.Lock, q.Token
	if err != nil {
		return err
	}
	s, err := h.Service.Release(c.ctx, q)
	if err != nil {
		return err
	}
	if c.holder = s.Holder; q.RequestID != "" && s.Ended != lease.Withdrawn {
		c.token = s.Token // of the lease that the request got
	}
	outcome := OutcomeReleased
	switch s.Ended {
	case lease.ReleasedBefore:
		outcome = OutcomeReleasedBefore
	case lease.ReleasedLate:
		outcome = OutcomeReleasedLate
	case lease.Withdrawn:
		outcome = OutcomeWithdrawn
	}
	return c.answer(http.StatusOK, outcome, stateOf(s))
}

func (h *Handler) breakLease(c *call) error {
	var b breakBody
	if err := c.read(&b); err != nil {
		return err
	}
	c.name.Lock, c.token, c.reason = b.Lock, b.Token, b.Reason
	s, err := h.Service.Break(c.ctx, lease.BreakRequest{Name: c.name, Token: b.Token, Reason: b.Reason})
	if err != nil {
		return err
	}
	c.holder = s.Holder
	if s.AlreadyFree {
		return c.answer(http.StatusOK, OutcomeAlreadyFree, brokenOf(s))
	}
	c.newToken = s.Token
	return c.answer(http.StatusOK, OutcomeBroken, brokenOf(s))
}

func (h *Handler) get(c *call) error {
	var b readBody
	if err := c.read(&b); err != nil {
		return err
	}
	c.name.Lock = b.Lock
	s, err := h.Service.Get(c.ctx, c.name)
	if err != nil {
		return err
	}
	c.token, c.holder = s.Token, s.Holder
	return c.answer(http.StatusOK, OutcomeRead, stateOf(s))
}

//go:embed openapi.json
var openapi []byte

func (h *Handler) spec(c *call) error {
	c.outcome, c.status = OutcomeRead, http.StatusOK
	c.w.Header().Set("Content-Type", "application/openapi+json;version=3.1")
	_, _ = c.w.Write(openapi) // the status is sent; a broken pipe is the client's to notice
	return nil
}

func (h *Handler) healthz(c *call) error {
	return c.answer(http.StatusOK, OutcomeRead, health{Status: "ok"})
}

// The bodies of requests. What is required has no useful zero, so that a
// missing member fails as a wrong one.
type acquireBody struct {
	Lock      string  `json:"lock"`
	TTL       millis  `json:"ttl_ms"`
	Holder    string  `json:"holder,omitzero"`
	RequestID *string `json:"request_id,omitzero"`
	Wait      millis  `json:"wait_ms,omitzero"`
	Metadata  string  `json:"metadata,omitzero"`
	MinHold   millis  `json:"min_hold_ms,omitzero"`
	LockDelay millis  `json:"lock_delay_ms,omitzero"`
}

func (b acquireBody) request(n lease.Name) (lease.AcquireRequest, error) {
	q := lease.AcquireRequest{
		Name:      n,
		TTL:       b.TTL.duration(),
		Holder:    b.Holder,
		Wait:      b.Wait.duration(),
		Metadata:  b.Metadata,
		MinHold:   b.MinHold.duration(),
		LockDelay: b.LockDelay.duration(),
	}
	if b.RequestID != nil {
		if q.RequestID = *b.RequestID; q.RequestID == "" {
			// Its caller believes that a repeat is harmless, and has no id.
			return q, &lease.InvalidError{Field: "request_id", Reason: "is empty"}
		}
	}
	return q, nil
}

type renewBody struct {
	Lock    string      `json:"lock"`
	LeaseID string      `json:"lease_id"`
	Token   fence.Token `json:"token"`
	TTL     millis      `json:"ttl_ms"`
}

type releaseBody struct {
	Lock      string       `json:"lock"`
	LeaseID   *string      `json:"lease_id,omitzero"`
	Token     *fence.Token `json:"token,omitzero"`
	RequestID *string      `json:"request_id,omitzero"`
}

// request takes what is empty for given, and not for missing.
func (b releaseBody) request(n lease.Name) (lease.ReleaseRequest, error) {
	n.Lock = b.Lock
	q := lease.ReleaseRequest{Name: n, LeaseID: value(b.LeaseID), Token: value(b.Token), RequestID: value(b.RequestID)}
	switch {
	case b.RequestID == nil:
	case q.RequestID == "":
		return q, &lease.InvalidError{Field: "request_id", Reason: "is empty"}
	case b.LeaseID != nil || b.Token != nil:
		return q, &lease.InvalidError{Field: "request_id", Reason: "is given, and so is lease_id or token: want one or the other"}
	}
	return q, nil
}

// given returns what a body has for v: nothing for its zero value.
func given[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// value is the inverse of given.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

type breakBody struct {
	Lock   string      `json:"lock"`
	Token  fence.Token `json:"token"`
	Reason string      `json:"reason"`
}

type readBody struct {
	Lock string `json:"lock"`
}
