package sdk

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// ttl is short, so that many of them pass in a test, and long enough for a
// machine with much else to do.
const ttl = 2 * time.Second

// TestMain lets the test binary be the process that is paused or killed.
func TestMain(m *testing.M) {
	if os.Getenv("ROLE") == "child" {
		new(child).run()
		return
	}
	// The tests wait for time to pass and compute nothing: let many do it at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "50"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A child uses the SDK as a program does, and does what it is told on its
// standard input. On its output it says what happened.
type child struct {
	held *lock.Held

	mu    sync.Mutex
	pause bool // at the next renewal
}

func (c *child) run() {
	client := &lock.Client{
		Service: &httplease.Client{URL: os.Getenv("URL")},
		TTL:     ttl,
		Holder:  os.Getenv("HOLDER"),
		Observe: c.observe,
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "acquire":
			c.take(client.Acquire)
		case "try":
			c.take(client.TryAcquire)
		case "work":
			c.work()
		case "pause":
			c.mu.Lock()
			c.pause = true
			c.mu.Unlock()
		case "release":
			c.say("released " + kind(c.held.Release(context.Background())))
		}
	}
}

func (c *child) take(how func(context.Context, string) (*lock.Held, error)) {
	h, err := how(context.Background(), os.Getenv("LOCK"))
	if err != nil {
		c.say("failed " + kind(err))
		return
	}
	c.held = h
	c.say(fmt.Sprintf("granted %d", h.Token()))
}

// work writes to the ledger, if the lock is held.
func (c *child) work() {
	if err := c.held.Err(); err != nil {
		c.say("stopped " + kind(err))
		return
	}
	a, err := http.Post(fmt.Sprintf("%s/ledger?token=%d", os.Getenv("URL"), c.held.Token()), "", nil)
	if err != nil {
		c.say("failed " + err.Error())
		return
	}
	_ = a.Body.Close() // there is none
	c.say(fmt.Sprintf("worked %d", a.StatusCode))
}

// observe tells of renewals and losses. To be paused right after a renewal the
// process stops itself: from outside there is no telling whether the next
// renewal has begun.
func (c *child) observe(_ context.Context, e lock.Event) {
	switch e.Kind {
	case lock.Renewed:
		c.mu.Lock()
		pause := c.pause
		c.pause = false
		c.mu.Unlock()
		if pause {
			c.say("pausing")
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // cannot fail
			return
		}
		c.say("renewed")
	case lock.Lost:
		c.say(fmt.Sprintf("lost %s %d", kind(e.Err), time.Now().UnixNano()))
	}
}

func (c *child) say(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Println(what)
}

// kind names an error for the other side.
func kind(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{lock.ErrLost, "lost"},
		{lock.ErrUnconfirmed, "unconfirmed"},
		{lock.ErrHeld, "held"},
		{lease.ErrOutcomeUnknown, "unknown"},
		{nil, "well"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return err.Error()
}
