package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/memlease"
	"github.com/pawl-lock/pawl/pkg/lock"
)

// The ten lines to start with. Memory stands for a service; see the examples of
// [Client] for how to reach one.
func Example() {
	locks := &lock.Client{Service: new(memlease.Store)}

	err := locks.Do(context.Background(), "payments/orders/42", func(ctx context.Context, token fence.Token) error {
		fmt.Println("shipping") // stops when ctx ends; every write carries the token
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: shipping
}

// A cron job starts on many hosts, and their clocks are never quite the same.
// One of them does it. MinHold keeps the lock for longer than the clocks are
// apart, even if the job is done before the last host has woken up. It is at most
// the TTL, and after a crash nobody is granted the lock for a TTL: hosts that are
// ten minutes apart need a TTL of ten minutes. And if the one that does it dies,
// nobody does it tonight: see the example of Do for one that must be done.
func ExampleClient_TryAcquire() {
	locks := &lock.Client{Service: new(memlease.Store), TTL: time.Minute, MinHold: 30 * time.Second}

	job := func(host string) {
		held, err := locks.TryAcquire(context.Background(), "reports/nightly")
		if errors.Is(err, lock.ErrHeld) {
			fmt.Println(host, "leaves it to another")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		defer held.Release(context.Background()) // if it fails, the lease ends by itself
		if before := held.Abandoned(); before != nil {
			fmt.Println(host, "cleans up what", before.Holder, "has left half done")
		}
		fmt.Println(host, "writes the report")
	}
	job("host 1")
	job("host 2") // a moment later
	// Output:
	// host 1 writes the report
	// host 2 leaves it to another
}

// One process of many leads, and another takes over when it ends.
func ExampleElection() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	election := lock.Election{
		Client: &lock.Client{Service: new(memlease.Store)},
		Lock:   "billing/leader",
		OnElected: func(ctx context.Context, term fence.Token) error {
			fmt.Println("leading") // writes carry the term, so that storage refuses a deposed leader
			stop()                 // a signal to shut down
			<-ctx.Done()
			return nil // resigns: the next leads at once
		},
		OnLost: func(term fence.Token, err error) {
			log.Printf("term %d was lost: %v", term, err)
		},
	}
	err := election.Run(ctx)
	fmt.Println(err)
	// Output:
	// leading
	// context canceled
}

// A ledger is storage that checks tokens, as the guards of this module do.
type ledger struct {
	mu      sync.Mutex
	seen    fence.Token
	entries []string
}

func (l *ledger) Add(lock string, token fence.Token, entry string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token < l.seen {
		return &fence.StaleError{Lock: lock, Token: token, Seen: l.seen}
	}
	l.seen = token
	l.entries = append(l.entries, entry)
	return nil
}

func (l *ledger) Has(entry string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.entries, entry)
}

// A write carries the token of the lock under which it is made. Nothing can stop
// a holder that was paused from sending a late write; the ledger refuses it.
func ExampleHeld_Token() {
	ctx := context.Background()
	service := new(memlease.Store)
	locks := &lock.Client{Service: service}
	var books ledger

	paused, err := locks.Acquire(ctx, "books/2026")
	if err != nil {
		log.Fatal(err)
	}
	// It is paused here, for so long that the lock goes to another.
	name := lease.Name{Namespace: "books", Lock: "2026"}
	if _, err := service.Break(ctx, lease.BreakRequest{Name: name, Token: paused.Token(), Reason: "paused"}); err != nil {
		log.Fatal(err)
	}
	err = locks.Do(ctx, "books/2026", func(ctx context.Context, token fence.Token) error {
		return books.Add("books/2026", token, "the new holder's")
	})
	if err != nil {
		log.Fatal(err)
	}
	// It wakes up.
	err = books.Add(paused.Lock(), paused.Token(), "the old holder's")
	fmt.Println(errors.Is(err, fence.ErrStale), books.entries)
	// Output: true [the new holder's]
}

// Workers share a batch of shards: each takes those that are free.
func ExampleClient_TryAcquire_shards() {
	ctx := context.Background()
	locks := &lock.Client{Service: new(memlease.Store)}

	elsewhere, err := locks.Acquire(ctx, "import/shard-1")
	if err != nil {
		log.Fatal(err)
	}
	defer elsewhere.Release(ctx)

	for shard := range 3 {
		held, err := locks.TryAcquire(ctx, fmt.Sprint("import/shard-", shard))
		if errors.Is(err, lock.ErrHeld) {
			fmt.Println("shard", shard, "is in other hands")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("shard", shard, "imported") // with held.Context() and held.Token()
		if err := held.Release(ctx); err != nil {
			log.Print(err) // it runs out by itself
		}
	}
	// Output:
	// shard 0 imported
	// shard 1 is in other hands
	// shard 2 imported
}

// A transfer needs both accounts. In whatever order they are named, two
// transfers never wait for each other.
func ExampleClient_DoAll() {
	locks := &lock.Client{Service: new(memlease.Store)}

	accounts := []string{"bank/bob", "bank/alice"}
	err := locks.DoAll(context.Background(), accounts, func(ctx context.Context, tokens map[string]fence.Token) error {
		fmt.Println("moving, with", len(tokens), "tokens") // each to the storage that its lock protects
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: moving, with 2 tokens
}

// A Lambda function is frozen or killed at its deadline. The work has to end
// before, early enough to release the lock and to report. Release keeps within
// the deadline of the context that it is given, so it gets that of the function.
func ExampleClient_Acquire_lambda() {
	locks := &lock.Client{Service: new(memlease.Store)}

	handle := func(ctx context.Context) error { // what the Lambda runtime calls
		deadline, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(ctx, deadline.Add(-500*time.Millisecond)) // to report in
		defer cancel()
		waiting, cancel := context.WithDeadline(ctx, deadline.Add(-1500*time.Millisecond))
		defer cancel()
		held, err := locks.Acquire(waiting, "media/transcode")
		if err != nil {
			return errors.Join(err, locks.Settle(ctx))
		}
		defer held.Release(ctx) // if it fails, the lease ends by itself

		work, cancel := context.WithDeadline(held.Context(), deadline.Add(-1500*time.Millisecond))
		defer cancel()
		select {
		case <-time.After(time.Hour): // the work, with held.Token()
			return nil
		case <-work.Done():
			return fmt.Errorf("stopped in time: %w", context.Cause(work))
		}
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	fmt.Println(handle(ctx))
	fmt.Println("time left:", ctx.Err() == nil)
	// Output:
	// stopped in time: context deadline exceeded
	// time left: true
}

// A nightly job starts on three hosts and must be done once, also when the host
// that began it dies. Each waits for its turn and looks whether it is done; the
// mark is written under the token, by the guarded write that writes the report.
func ExampleClient_Do_oncePerNight() {
	ctx := context.Background()
	locks := &lock.Client{Service: new(memlease.Store), TTL: time.Second}
	var reports ledger // in a database: the report, and that it is there, in one transaction

	nightly := func(host string) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // how long it may take in all
		defer cancel()
		return locks.Do(ctx, "reports/2026-12-03", func(ctx context.Context, token fence.Token) error {
			if reports.Has("report") {
				fmt.Println(host, "finds it done")
				return nil
			}
			fmt.Println(host, "writes the report")
			return reports.Add("reports/2026-12-03", token, "report")
		})
	}

	// The first host takes the lock and dies in the middle: nothing renews it.
	dead := lease.AcquireRequest{Name: lease.Name{Namespace: "reports", Lock: "2026-12-03"}, TTL: time.Second}
	if _, err := locks.Service.Acquire(ctx, dead); err != nil {
		log.Fatal(err)
	}
	for _, host := range []string{"host 2", "host 3"} {
		if err := nightly(host); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// host 2 writes the report
	// host 3 finds it done
}

// A leader writes with its term, so that storage refuses what it still sends after
// it was deposed.
func ExampleElection_guarded() {
	ctx, stop := context.WithCancel(context.Background())
	var books ledger
	election := lock.Election{
		Client: &lock.Client{Service: new(memlease.Store), Observe: lock.LogEvents(slog.New(slog.DiscardHandler))},
		Lock:   "billing/leader",
		OnElected: func(ctx context.Context, term fence.Token) error {
			defer stop() // a signal to shut down
			return books.Add("billing/leader", term, "an invoice")
		},
	}
	err := election.Run(ctx) // resigns, and is elected no more, before it returns
	fmt.Println(err, books.entries)
	// Output: context canceled [an invoice]
}

// A program that is told to end cancels its waits, and waits until the service
// knows: or the lock could be granted to a process that is gone.
func ExampleClient_Settle() {
	locks := &lock.Client{Service: new(memlease.Store)}
	ctx, shutdown := context.WithCancel(context.Background())
	shutdown()
	_, err := locks.Acquire(ctx, "payments/orders/42")
	fmt.Println(err)

	ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(locks.Settle(ending))
	// Output:
	// context canceled
	// <nil>
}
