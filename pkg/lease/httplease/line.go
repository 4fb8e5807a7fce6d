package httplease

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"reflect"
	"sync"
	"time"
)

// silence is how long a connection has said nothing when a request on it is
// given up, for the connection to be given up too.
const silence = 400 * time.Millisecond

// A line watches one request through its transport, to learn what an error does
// not say: whether it was sent at all, and whether the connection is dead.
type line struct {
	asked bool // for a connection; a transport that is not of net/http tells nothing
	got   bool
	conn  net.Conn
	since time.Time
}

// lines are the requests under way on each connection: when something was last
// heard on it, and how many there are.
var lines = struct {
	sync.Mutex
	of map[net.Conn]*traffic
}{of: make(map[net.Conn]*traffic)}

type traffic struct {
	heard    time.Time
	requests int
}

// trace returns a context that has the transport tell l what it does.
func (l *line) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			lines.Lock()
			defer lines.Unlock()
			l.asked = true
		},
		GotConn: func(info httptrace.GotConnInfo) {
			lines.Lock()
			defer lines.Unlock()
			l.got = true
			l.leave()
			if info.Conn == nil || !reflect.TypeOf(info.Conn).Comparable() {
				return
			}
			l.conn, l.since = info.Conn, time.Now()
			if lines.of[l.conn] == nil {
				lines.of[l.conn] = new(traffic)
			}
			lines.of[l.conn].requests++
		},
		GotFirstResponseByte: func() {
			lines.Lock()
			defer lines.Unlock()
			if t := lines.of[l.conn]; t != nil {
				t.heard = time.Now()
			}
		},
	})
}

// leave forgets the connection. [lines] is locked.
func (l *line) leave() {
	if l.conn == nil {
		return
	}
	if t := lines.of[l.conn]; t != nil {
		if t.requests--; t.requests == 0 {
			delete(lines.of, l.conn)
		}
	}
	l.conn = nil
}

// end is told what became of the request. If it timed out on a connection that
// has been silent since, the connection is closed, so that the next request
// takes another: giving up a request leaves an HTTP/2 connection open, dead or
// not, and the next request would go the same way. To the transport it is as if
// the network had closed it.
func (l *line) end(err error) (sent bool) {
	lines.Lock()
	conn, dead := l.conn, false
	if t := lines.of[conn]; conn != nil && t != nil {
		timedOut := errors.Is(err, context.DeadlineExceeded)
		dead = timedOut && !t.heard.After(l.since) && time.Since(l.since) >= silence
	}
	l.leave()
	sent = l.got || !l.asked
	lines.Unlock()
	if dead {
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn() // no farewell, which could block
		}
		_ = conn.Close() // it may be closed already
	}
	return sent
}
