package httplease

import (
	"net"
	"net/http"
	"time"
)

// transport is what a nil [Client.HTTP] and a nil [SigV4.Base] mean. Beside
// times that are bounded it has what [http.DefaultTransport] lacks: it pings
// HTTP/2 connections. All requests to a host share one of those, and without
// pings one that has died silently takes them all until TCP notices, which can
// be a quarter of an hour.
var transport = &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
	TLSHandshakeTimeout:   3 * time.Second,
	ResponseHeaderTimeout: 30 * time.Second, // as API Gateway, a wait of the service included
	ExpectContinueTimeout: time.Second,
	IdleConnTimeout:       90 * time.Second,
	MaxIdleConns:          256,
	MaxIdleConnsPerHost:   64,
	ForceAttemptHTTP2:     true,
	HTTP2: &http.HTTP2Config{
		SendPingTimeout:  2 * time.Second,
		PingTimeout:      2 * time.Second,
		WriteByteTimeout: 5 * time.Second,
	},
}

// apart returns a transport for the requests in which the service waits. Where
// connections are bounded these need some of their own: waiters would keep the
// holders of the same process from renewing.
func (c *Client) apart(t http.RoundTripper) http.RoundTripper {
	signer, signed := t.(*SigV4)
	base := t
	if signed {
		base = signer.Base
	} else if t == nil {
		base = http.DefaultTransport
	}
	shared, ok := base.(*http.Transport)
	if !ok || shared.MaxConnsPerHost == 0 {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared != shared {
		c.shared, c.waits = shared, shared.Clone()
	}
	if signed {
		return signing{signer, c.waits}
	}
	return c.waits
}

// signing is a [SigV4] over another base.
type signing struct {
	*SigV4
	base http.RoundTripper
}

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) { return s.send(s.base, r) }
