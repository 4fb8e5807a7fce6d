package httplease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawl-lock/pawl/pkg/lease"
)

// A Client is a [lease.Service] that asks one over HTTP. It makes each call
// once: whoever wants an answer after [lease.ErrOutcomeUnknown] repeats it.
type Client struct {
	// URL is where the service is, without the path "/v1". Required.
	URL string

	// HTTP makes the requests; its transport signs them or adds a bearer token.
	// Nil means one that gives up after 30 s, as API Gateway does.
	HTTP *http.Client
}

var _ lease.Service = (*Client)(nil)

// Acquire implements [lease.Service].
func (c *Client) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	b := acquireBody{
		Lock:      q.Lock,
		TTL:       millisOf(q.TTL),
		Holder:    q.Holder,
		RequestID: given(q.RequestID),
		Wait:      millisOf(q.Wait),
		Metadata:  q.Metadata,
		MinHold:   millisOf(q.MinHold),
		LockDelay: millisOf(q.LockDelay),
	}
	var out leaseBody
	status, err := c.post(ctx, q.Namespace, "acquire", b, &out)
	if err != nil {
		return lease.Lease{}, err
	}
	l, err := out.lease(q.Name)
	l.Repeated = err == nil && status == http.StatusOK
	return l, err
}

// Renew implements [lease.Service].
func (c *Client) Renew(ctx context.Context, q lease.RenewRequest) (lease.Lease, error) {
	var out leaseBody
	_, err := c.post(ctx, q.Namespace, "renew", renewBody{q.Lock, q.LeaseID, q.Token, millisOf(q.TTL)}, &out)
	if err != nil {
		return lease.Lease{}, err
	}
	return out.lease(q.Name)
}

// Release implements [lease.Service].
func (c *Client) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	var out stateBody
	_, err := c.post(ctx, q.Namespace, "release", releaseBody{q.Lock, given(q.LeaseID), given(q.Token), given(q.RequestID)}, &out)
	if err != nil {
		return lease.State{}, err
	}
	return out.state("release", q.Name)
}

// Break implements [lease.Service].
func (c *Client) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	var out stateBody
	_, err := c.post(ctx, q.Namespace, "break", breakBody{q.Lock, q.Token, q.Reason}, &out)
	if err != nil {
		return lease.Broken{}, err
	}
	s, err := out.state("break", q.Name)
	return lease.Broken{State: s, AlreadyFree: out.AlreadyFree != nil && *out.AlreadyFree}, err
}

// Get implements [lease.Service].
func (c *Client) Get(ctx context.Context, n lease.Name) (lease.State, error) {
	var out stateBody
	if _, err := c.post(ctx, n.Namespace, reading, readBody{n.Lock}, &out); err != nil {
		return lease.State{}, err
	}
	return out.state(reading, n)
}

// reading is the one action that changes nothing: it has no outcome that could
// be unknown.
const reading = "read"

func (c *Client) post(ctx context.Context, namespace, action string, in, out any) (status int, err error) {
	path, err := c.path(namespace, action)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		// Text that is not UTF-8. Repaired, it would be another lock.
		return 0, invalidBody(err)
	}
	return c.do(ctx, action, path, body, out)
}

// path checks the namespace here: as a part of the path it would not arrive.
func (c *Client) path(namespace, action string) (string, error) {
	if err := (lease.Name{Namespace: namespace, Lock: "x"}).Validate(); err != nil {
		return "", err
	}
	return strings.TrimSuffix(c.URL, "/") + "/v1/" + namespace + "/" + action, nil
}

// stay follows no redirect. The service has none, and whoever answers with one
// is not to have lease ids, nor the credentials that a transport adds.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// do makes one request and reads its answer into out.
func (c *Client) do(ctx context.Context, action, path string, body []byte, out any) (status int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err == nil && r.URL.Host == "" {
		err = fmt.Errorf("the URL %q has no host", c.URL)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: httplease: %w", lease.ErrMisconfigured, err)
	}
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: 30 * time.Second}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = stay
	}
	a, err := client.Do(r)
	if err != nil {
		return 0, unanswered(action, err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(io.LimitReader(a.Body, 64<<10))
	if err != nil {
		return 0, unanswered(action, err)
	}
	if a.StatusCode/100 == 2 {
		if err := json.Unmarshal(text, out); err != nil {
			return 0, unread(action, err)
		}
		return a.StatusCode, nil
	}
	return 0, refusal(action, a, text)
}

// unanswered says what it means that there is no answer that can be read.
func unanswered(action string, err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, lease.ErrUnavailable), errors.Is(err, lease.ErrMisconfigured): // it was not signed, and not sent
		return err
	case action == reading, errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("%w: httplease: %w", lease.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: httplease: %w", lease.ErrOutcomeUnknown, err)
}

// unread is for a success that cannot be read: what it says was done.
func unread(action string, err error) error {
	return unanswered(action, fmt.Errorf("the answer is not what it should be: %w", err))
}

// refusal reads an answer that is no success: a problem of the service, or what
// a gateway in front of it said.
func refusal(action string, a *http.Response, text []byte) error {
	byStatus := func(status int) error { return gatewayError(action, status) }
	media, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	var p problem
	if media == "application/problem+json" && json.Unmarshal(text, &p) == nil {
		p.Status = a.StatusCode
		if action == reading && p.Code == "outcome_unknown" {
			p.Code = "unavailable" // reading has no outcome
		}
		return p.error(byStatus)
	}
	return fmt.Errorf("%w: httplease: %s: %.200q", byStatus(a.StatusCode), a.Status, text)
}

// gatewayError is what an answer of API Gateway's own says of the outcome. A 4xx
// never got to the service; a 5xx may have, and have been carried out.
func gatewayError(action string, status int) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return lease.ErrForbidden
	case status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge:
		return lease.ErrInvalid
	case status == http.StatusGone: // only a service that is newer says this
		return lease.ErrLost
	case status == http.StatusTooManyRequests:
		return &lease.RetryError{Err: lease.ErrThrottled, After: time.Second}
	case status < 500:
		return lease.ErrMisconfigured
	case action == reading:
		return &lease.RetryError{Err: lease.ErrUnavailable, After: time.Second}
	}
	return &lease.RetryError{Err: lease.ErrOutcomeUnknown, After: time.Second}
}
