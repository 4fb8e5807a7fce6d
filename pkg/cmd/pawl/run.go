package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-lock/pawl/pkg/cmd/pawl/internal/guardian"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/httplease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// Exit codes of pawl itself; the usage says what they mean.
const (
	held        = 120
	timedOut    = 121
	lost        = 122
	unreachable = 123
	misuse      = 125
	cannotRun   = 126
)

func complain(code int, err error) int {
	fmt.Fprintln(os.Stderr, "pawl:", err)
	return code
}

// a job is what the command line of pawl run says.
type job struct {
	lock               string
	ttl, wait, minHold time.Duration
	command            []string
}

func parse(args []string) (j job, err error) {
	i := slices.Index(args, "--")
	if i < 0 || i == len(args)-1 {
		return j, errors.New("a command is missing after --")
	}
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&j.ttl, "ttl", 15*time.Second, "")
	f.DurationVar(&j.wait, "wait", 0, "")
	f.DurationVar(&j.minHold, "min-hold", 0, "")
	j.command = args[i+1:]
	if err := f.Parse(args[:i]); err != nil {
		return j, err
	}
	if j.lock = f.Arg(0); j.lock == "" {
		return j, errors.New("LOCK is missing")
	}
	if err := f.Parse(f.Args()[1:]); err != nil {
		return j, err
	}
	switch {
	case f.NArg() > 0:
		return j, fmt.Errorf("%q is one argument too many before --", f.Arg(0))
	case j.ttl < time.Second:
		return j, fmt.Errorf("--ttl is %v, want at least 1s", j.ttl)
	case j.wait < 0:
		return j, fmt.Errorf("--wait is %v, want no less than 0s", j.wait)
	}
	return j, nil
}

func run(args []string) int {
	if slices.Contains(args[:max(slices.Index(args, "--"), 0)], "--help") || slices.Equal(args, []string{"--help"}) {
		fmt.Print(usage)
		return 0
	}
	j, err := parse(args)
	if err != nil {
		return complain(misuse, err)
	}
	c := &httplease.Client{URL: os.Getenv("PAWL_URL")}
	if c.URL == "" {
		return complain(misuse, errors.New("PAWL_URL is not set"))
	}
	if file := os.Getenv("PAWL_BEARER_FILE"); file != "" {
		c.HTTP = &http.Client{Transport: bearer{file, httplease.DefaultTransport}}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	locks := &lock.Client{Service: c, TTL: j.ttl, MinHold: j.minHold, Observe: func(context.Context, lock.Event) {}}
	h, code := acquire(locks, j, signals)
	if h == nil {
		return code
	}
	code = hold(h, j, signals)
	if err := h.Release(context.Background()); err != nil && !errors.Is(err, lock.ErrLost) { // 5 seconds at most
		fmt.Fprintln(os.Stderr, "pawl: the lock may be held for the rest of its TTL:", err)
	}
	return code
}

// acquire returns nil and an exit code if the lock was not granted.
func acquire(locks *lock.Client, j job, signals <-chan os.Signal) (*lock.Held, int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type answer struct {
		h   *lock.Held
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		if j.wait == 0 {
			h, err := locks.TryAcquire(ctx, j.lock)
			answers <- answer{h, err}
			return
		}
		ctx, cancel := context.WithTimeout(ctx, j.wait)
		defer cancel()
		h, err := locks.Acquire(ctx, j.lock)
		answers <- answer{h, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case s := <-signals:
		cancel()
		if a = <-answers; a.h != nil {
			_ = a.h.Release(context.Background()) // it ends by itself
		}
		settle(locks)
		return nil, 128 + int(s.(syscall.Signal))
	}
	switch err := a.err; {
	case err == nil:
		return a.h, 0
	case errors.Is(err, lock.ErrWaitTimeout):
		settle(locks)
		return nil, complain(timedOut, err)
	case errors.Is(err, lock.ErrHeld):
		return nil, complain(held, err)
	case errors.Is(err, lease.ErrInvalid):
		return nil, complain(misuse, err)
	default:
		settle(locks)
		return nil, complain(unreachable, err)
	}
}

// settle has requests that were given up hold nothing any more.
func settle(locks *lock.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = locks.Settle(ctx) // what it could not take back ends by itself
}

// hold runs the command, and returns when nothing of it is left.
func hold(h *lock.Held, j job, signals <-chan os.Signal) int {
	env := append(os.Environ(), "PAWL_LOCK="+h.Lock(), fmt.Sprint("PAWL_FENCING_TOKEN=", h.Token()))
	cmd, err := guardian.Start(j.command, env)
	if err != nil {
		return complain(cannotRun, err)
	}
	grace := j.ttl / 5 // two renewals may fail before
	done := make(chan struct{})
	var out guardian.Outcome
	go func() { out, err = cmd.Wait(); close(done) }()
	tick := time.NewTicker(j.ttl / 50)
	defer tick.Stop()
	gone := h.Lost()
	for until := (time.Time{}); ; {
		if d := h.Deadline(); d.After(until) {
			until = d
			cmd.Extend(d, grace)
		}
		select {
		case <-done:
			switch {
			case out.Error != "":
				return complain(out.Code, errors.New(out.Error))
			case out.Ended || h.Err() != nil:
				return complain(lost, errors.Join(errors.New("the command was ended: the lock was lost, or not renewed"), h.Err()))
			case err != nil:
				return complain(lost, err)
			}
			return out.Code
		case <-gone: // another may have it at once: there is no time to ask
			gone = nil
			cmd.Kill()
		case s := <-signals:
			cmd.Signal(s.(syscall.Signal))
		case <-tick.C:
		}
	}
}

// bearer adds the token that is in a file, which may be replaced meanwhile.
type bearer struct {
	file string
	next http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(b.file)
	if err != nil {
		return nil, fmt.Errorf("PAWL_BEARER_FILE: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return b.next.RoundTrip(r)
}
