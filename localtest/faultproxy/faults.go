package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Fault is what becomes of a request: it may forward it, reply to it, both, or
// neither.
type Fault func(*Exchange)

// An Answer is what the engine said, or what is said in its place.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error // there was no answer
}

// Name returns the name of the error that the answer is, without its prefix, or
// nothing.
func (a Answer) Name() string {
	var body struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(a.Body, &body) // what is no JSON names no error
	return body.Type[strings.LastIndex(body.Type, "#")+1:]
}

// Pass is no fault.
func Pass(x *Exchange) { x.Reply(x.Forward()) }

// Drop loses the request: the connection ends and nothing is executed.
func Drop(*Exchange) {}

// Reset loses the request like [Drop], with a reset instead of an end.
func Reset(x *Exchange) {
	conn, _, err := x.w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	x.answered = true
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0) // without it the connection just ends
	}
	_ = conn.Close()
}

// Hang loses the request and says nothing until the client gives up.
func Hang(x *Exchange) { x.Await() }

// After executes the request first; its answer is lost.
func After(f Fault) Fault {
	return func(x *Exchange) {
		if a := x.Forward(); a.Err == nil {
			f(x)
		}
	}
}

// Twice executes the request twice at once and replies with the answer that came
// last.
func Twice(x *Exchange) {
	first := make(chan Answer)
	go func() { first <- x.Forward() }()
	second := x.Forward()
	select {
	case <-first:
		x.Reply(second)
	default:
		x.Reply(<-first)
	}
}

// Refuse answers as DynamoDB does with an error of that name.
func Refuse(status int, name string) Fault {
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"injected"}`, name)
	return Say(status, "application/x-amz-json-1.0", body)
}

// Say answers with any body.
func Say(status int, contentType, body string) Fault {
	return func(x *Exchange) {
		header := http.Header{"Content-Type": {contentType}}
		if strings.Contains(contentType, "amz") { // a middlebox does not know of checksums
			header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10))
		}
		x.Reply(Answer{Status: status, Header: header, Body: []byte(body)})
	}
}

// Truncate executes the request and breaks the connection in the middle of the
// answer.
func Truncate(x *Exchange) {
	a := x.Forward()
	if a.Err != nil {
		return
	}
	a.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	a.Body = a.Body[:len(a.Body)/2]
	x.Reply(a)
	x.answered = false
}

// Corrupt executes the request and changes a digit of the answer, which is
// still JSON: only its checksum tells.
func Corrupt(x *Exchange) {
	a := x.Forward()
	if a.Err != nil {
		return
	}
	if i := bytes.IndexAny(a.Body, "123456789"); i >= 0 {
		a.Body[i]--
	} else { // then it is the checksum that is wrong
		a.Header.Set("X-Amz-Crc32", "1")
	}
	x.Reply(a)
}

// Dated executes the request and has the answer say that it is another time, as
// an engine with a wrong clock says it.
func Dated(ahead time.Duration) Fault {
	return func(x *Exchange) {
		a := x.Forward()
		if a.Err == nil {
			a.Header.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		}
		x.Reply(a)
	}
}

// A Chance is a fault with its probability, 0 to 1.
type Chance struct {
	Of    float64
	Fault Fault
}

// Random draws one of the faults for each request, or none. Requests that come
// one by one meet the same faults for the same seed.
func Random(seed uint64, chances ...Chance) Fault {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 0))
	draw := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Float64()
	}
	return func(x *Exchange) {
		p := draw()
		for _, c := range chances {
			if p < c.Of {
				c.Fault(x)
				return
			}
			p -= c.Of
		}
		Pass(x)
	}
}
