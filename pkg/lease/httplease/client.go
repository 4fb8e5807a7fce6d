package httplease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	// Its Timeout does not count the time for which the service is asked to wait,
	// and those requests have connections of their own if its transport, or the
	// one below its [Layer]s, bounds them with MaxConnsPerHost. Another transport
	// with a bound must allow for as many waits as there are at a time, and more.
	//
	// Nil means one with [DefaultTransport]: it is for services that need no
	// credentials.
	HTTP *http.Client

	mu            sync.Mutex
	shared, waits *http.Transport // see apart
}

var _ lease.Service = (*Client)(nil)

// Acquire implements [lease.Service].
func (c *Client) Acquire(ctx context.Context, q lease.AcquireRequest) (lease.Lease, error) {
	b := acquireBody{
		Lock:      q.Name.Lock,
		TTL:       millisOf(q.TTL),
		Holder:    q.Holder,
		RequestID: given(q.RequestID),
		Wait:      millisOf(q.Wait),
		Metadata:  q.Metadata,
		MinHold:   millisOf(q.MinHold),
		LockDelay: millisOf(q.LockDelay),
	}
	var out leaseBody
	status, err := c.postWaiting(ctx, q.Wait, q.Name.Namespace, "acquire", b, &out)
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
	_, err := c.post(ctx, q.Name.Namespace, "renew", renewBody{q.Name.Lock, q.LeaseID, q.Token, millisOf(q.TTL)}, &out)
	if err != nil {
		return lease.Lease{}, err
	}
	return out.lease(q.Name)
}

// Release implements [lease.Service].
func (c *Client) Release(ctx context.Context, q lease.ReleaseRequest) (lease.State, error) {
	var out stateBody
	_, err := c.post(ctx, q.Name.Namespace, "release", releaseBody{q.Name.Lock, given(q.LeaseID), given(q.Token), given(q.RequestID)}, &out)
	if err != nil {
		return lease.State{}, err
	}
	return out.state("release", q.Name)
}

// Break implements [lease.Service].
func (c *Client) Break(ctx context.Context, q lease.BreakRequest) (lease.Broken, error) {
	var out stateBody
	_, err := c.post(ctx, q.Name.Namespace, "break", breakBody{q.Name.Lock, q.Token, q.Reason}, &out)
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
	return c.postWaiting(ctx, 0, namespace, action, in, out)
}

func (c *Client) postWaiting(ctx context.Context, wait time.Duration, namespace, action string, in, out any) (status int, err error) {
	path, err := c.path(namespace, action)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		// Text that is not UTF-8. Repaired, it would be another lock.
		return 0, invalidBody(err)
	}
	return c.do(ctx, wait, action, path, body, out)
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

// client returns what makes a request in which the service waits.
func (c *Client) client(wait time.Duration) *http.Client {
	client := http.Client{Timeout: 30 * time.Second, Transport: DefaultTransport}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	if wait > 0 {
		client.Transport = c.apart(client.Transport)
		if client.Timeout > 0 {
			client.Timeout += wait
		}
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = stay
	}
	return &client
}

// do makes one request and reads its answer into out.
func (c *Client) do(ctx context.Context, wait time.Duration, action, path string, body []byte, out any) (status int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	r, err := http.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	if err == nil && r.URL.Host == "" {
		err = errors.New("it has no host")
	}
	if err != nil {
		return 0, fmt.Errorf("%w: httplease: the URL %q: %w", lease.ErrMisconfigured, c.URL, err)
	}
	r.Header.Set("Content-Type", "application/json")
	var l line
	a, text, err := exchange(c.client(wait), r.WithContext(l.trace(ctx)))
	if sent := l.end(err); err != nil {
		return 0, unanswered(action, sent, err)
	}
	if a.StatusCode/100 == 2 {
		if err := json.Unmarshal(text, out); err != nil {
			return 0, unread(action, err)
		}
		return a.StatusCode, nil
	}
	return 0, refusal(action, r, a, text)
}

// exchange sends a request and reads the answer.
func exchange(client *http.Client, r *http.Request) (*http.Response, []byte, error) {
	a, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(io.LimitReader(a.Body, 64<<10))
	return a, text, err
}
