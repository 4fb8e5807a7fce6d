package httplease

import (
	"net"
	"net/http"
	"time"
)

// DefaultTransport is what a nil [Client.HTTP] means, and what a transport that
// adds something should send with. Beside times that are bounded it has what
// [http.DefaultTransport] lacks: it pings HTTP/2 connections. All requests to a host share one of those, and without
// pings one that has died silently takes them all until TCP notices, which can
// be a quarter of an hour.
var DefaultTransport http.RoundTripper = &http.Transport{
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

// A Layer is a transport that adds something to requests, a signature for
// instance, and sends them with another transport.
type Layer interface {
	http.RoundTripper

	// Over returns the same layer over what change returns for its base.
	Over(change func(base http.RoundTripper) http.RoundTripper) http.RoundTripper
}

// apart returns a transport for the requests in which the service waits. Where
// connections are bounded these need some of their own: waiters would keep the
// holders of the same process from renewing.
func (c *Client) apart(t http.RoundTripper) http.RoundTripper {
	switch t := t.(type) {
	case nil:
		return c.apart(http.DefaultTransport)
	case Layer:
		return t.Over(c.apart)
	case *http.Transport:
		if t.MaxConnsPerHost != 0 {
			return c.waiting(t)
		}
	}
	return t
}

// waiting returns the copy of a transport that is for waits.
func (c *Client) waiting(shared *http.Transport) http.RoundTripper {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared != shared {
		c.shared, c.waits = shared, shared.Clone()
	}
	return c.waits
}
